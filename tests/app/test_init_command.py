import json
import re
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from app.run.settings import load_settings, misspelt, variables
from app.run.version import ROOT
from splitter.catalog.load import builtin, load_catalog


@pytest.fixture
def folder(reviewloop, tmp_path, monkeypatch):
    """A folder made with `init`, in which the rest of the test runs."""

    def made(*arguments):
        result = reviewloop("init", str(tmp_path / "work"), *arguments)
        assert result.exit_code == 0, result.stderr
        monkeypatch.chdir(tmp_path / "work")
        return tmp_path / "work"

    return made


def test_a_folder_to_work_in(folder, reviewloop):
    made = folder()
    assert (made / ".env").stat().st_mode & 0o777 == 0o600
    assert load_catalog(made / "sites.yaml") == builtin("today")
    assert misspelt() == {}
    settings = load_settings()
    assert len(settings.secret_key) >= 16
    assert len(settings.pseudonym_key) >= 16
    empty = reviewloop("product", "import", "names.csv")
    assert (empty.exit_code, "names.csv holds no product" in empty.stderr) == (2, True)


def test_every_setting_stands_in_it_with_its_default(folder):
    lines = (folder() / ".env").read_text("utf-8").splitlines()
    given = [line.removeprefix("# ") for line in lines if line.removeprefix("# ").startswith("REVIEWLOOP_")]
    file = Path(".env")
    file.write_text("\n".join(given), "utf-8")
    assert misspelt() == {}
    assert load_settings(secret_key="", pseudonym_key="") == load_settings({})


def test_what_is_there_stays(reviewloop, tmp_path):
    (tmp_path / "names.csv").write_text("name\n特仑苏\n", "utf-8")
    files = json.loads(reviewloop("init", str(tmp_path), "--json").stdout)["files"]
    assert {Path(one["path"]).name for one in files if not one["made"]} == {"names.csv"}
    assert (tmp_path / "names.csv").read_text("utf-8") == "name\n特仑苏\n"


def test_a_folder_that_cannot_be_made(reviewloop, tmp_path):
    (tmp_path / "file").write_text("")
    result = reviewloop("init", str(tmp_path / "file" / "work"))
    assert result.exit_code == 2
    assert str(tmp_path / "file") in result.stderr


def test_the_compose_file_is_the_projects_and_finds_its_passwords(folder):
    made = folder()
    given = dict(variables((made / ".env").read_text("utf-8"), ".env", ""))
    text = (made / "docker-compose.yml").read_text("utf-8")
    whole, project = yaml.safe_load(text), yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    PyCompose.from_yaml(yaml.safe_dump(whole))
    for name, service in project["services"].items():
        if service.pop("build", None):
            assert whole["services"][name].pop("pull_policy") == "never"
    assert whole["services"] == project["services"]
    asked = set(re.findall(r"(?<!\$)\$\{(\w+)\b", text))
    assert asked == {"POSTGRES_PASSWORD", "REDIS_PASSWORD", "SEARXNG_SECRET"}
    passwords = [given[name] for name in (*asked, "REVIEWLOOP_SECRET_KEY", "REVIEWLOOP_PSEUDONYM_KEY")]
    assert len(set(passwords)) == 5
    assert {len(one) for one in passwords} == {48}
