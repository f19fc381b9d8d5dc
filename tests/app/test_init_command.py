import json
import re
from pathlib import Path

import pytest
import yaml
from compose_spec import PyCompose

from app.run.settings import load_settings, misspelt, variables
from app.run.version import ROOT
from app.web.base.access import token_hash
from splitter.catalog.load import builtin, load_catalog
from splitter.errors import InputError


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


def test_some_groups_and_sites(folder):
    made = folder("--group", "complaints", "--site", "zhihu.com")
    catalog, whole = load_catalog(made / "sites.yaml"), builtin("today")
    assert {site.group for name, site in catalog.sites.items() if name != "zhihu.com"} == {"complaints"}
    for name, site in catalog.sites.items():
        assert site == whole.sites[name]
        assert catalog.engine_of(name) == whole.engine_of(name)
        assert catalog.rules_of(name) == whole.rules_of(name)


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


def test_its_searxng_is_the_one_of_the_cluster():
    small = yaml.safe_load((ROOT / "app" / "search-compose.yaml").read_text("utf-8"))
    whole = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))
    assert small["configs"] == whole["configs"]
    assert small["services"]["searxng"]["image"] == whole["services"]["searxng"]["image"]


def test_the_environment_comes_before_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(".env").write_text(
        '# a comment\n\nREVIEWLOOP_CONTACT="me@example.com"\nOTHER=1\nREVIEWLOOP_SLOTS=7\n', "utf-8"
    )
    monkeypatch.setenv("REVIEWLOOP_SLOTS", "9")
    settings = load_settings()
    assert (settings.contact, settings.slots) == ("me@example.com", 9)
    Path(".env").write_text("REVIEWLOOP_SLOTS=7\nwhat is this\n", "utf-8")
    with pytest.raises(InputError, match=r"\.env:2: 'what is this'"):
        load_settings()


def test_the_compose_files_are_a_cluster_with_secrets_of_its_own(folder):
    made = folder()
    given = dict(variables((made / ".env").read_text("utf-8"), ".env", ""))
    text = (made / "docker-compose.yml").read_text("utf-8")
    whole = yaml.safe_load(text)
    search = yaml.safe_load((made / "searxng.yml").read_text("utf-8"))
    for one in (whole, search):
        PyCompose.from_yaml(yaml.safe_dump(one))
    broken = {**whole, "services": {**whole["services"], "redis": {"imagee": "a"}}}
    with pytest.raises(ValueError, match="redis"):
        PyCompose.from_yaml(yaml.safe_dump(broken))
    project = yaml.safe_load((ROOT / "docker-compose.yml").read_text("utf-8"))["services"]
    assert {*whole["services"], *search["services"]} == project.keys()
    assert whole["include"] == ["searxng.yml"]
    asked = set(re.findall(r"(?<!\$)\$\{(\w+)(?!:-)\b", text))
    passwords, hashes = {"POSTGRES_PASSWORD", "REDIS_PASSWORD"}, {"WEB_VIEWER_HASH", "WEB_OPERATOR_HASH"}
    assert asked == passwords | hashes
    tokens = re.findall(r"^\w+: (\S+)$", (made / "web-tokens.txt").read_text("utf-8"), re.MULTILINE)
    assert {given[name] for name in hashes} == set(map(token_hash, tokens))
    assert (made / "web-tokens.txt").stat().st_mode & 0o777 == 0o600
    assert all(len(given[name]) == 48 for name in passwords)
    assert len({given[name] for name in (*passwords, "SEARXNG_SECRET", "REVIEWLOOP_SECRET_KEY")}) == 4
    for name, service in whole["services"].items():
        assert service.get("ports", []) == (["127.0.0.1:8787:8787"] if name == "web" else [])
        if name not in ("redis", "postgres"):
            assert service["command"] == project[name]["command"], name
            environment = {
                key: re.sub(r"\$\{.*?\}", "sha256:" + 64 * "0", value)
                for key, value in service["environment"].items()
            }
            assert misspelt(environment) == {}
            load_settings(environment)
        else:
            assert service["image"] == project[name]["image"]
