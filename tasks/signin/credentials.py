"""Names, passwords and client secrets: from the environment, never written down, never shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tasks.signin.errors import MissingCredential

PREFIX = "REVIEWLOOP_LOGIN_"


class Part(StrEnum):
    """Secrets that a site may ask for."""

    USER = "USER"
    PASSWORD = "PASSWORD"
    CLIENT_ID = "CLIENT_ID"
    CLIENT_SECRET = "CLIENT_SECRET"
    COOKIES = "COOKIES"


def variable_of(name: str, part: Part) -> str:
    """The environment variable of a site's or engine's name.

    Upper case; a dot becomes ``_``, a dash ``__``: no two names of a catalog share one.
    """
    return f"{PREFIX}{name.replace('-', '__').replace('.', '_').upper()}_{part}"


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials of one site.

    Attributes:
        name: of the site or engine.
        environment: the variables by name.
    """

    name: str
    environment: Mapping[str, str] = field(repr=False)

    @property
    def any(self) -> bool:
        """Whether one of them is set."""
        return any(self.environment.get(variable_of(self.name, part)) for part in Part)

    def get(self, part: Part) -> str:
        """One of them. Raises MissingCredential, naming the variable."""
        variable = variable_of(self.name, part)
        value = self.environment.get(variable, "")
        if not value:
            raise MissingCredential(
                "{name} asks to sign in, and {variable} is not set; set it in the environment",
                name=self.name,
                variable=variable,
            )
        return value
