"""The sign-ins of a process: catalog, credentials of the environment, encrypted file and way out put together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType

from app.config import Settings, logins
from app.lab.hashed_login import HashedPassword
from splitter.catalog.model import Catalog
from tasks.signin.credentials import Credentials
from tasks.signin.errors import MissingCredential
from tasks.signin.keep import Keep
from tasks.signin.signins import OwnWay, SignIns, signing
from tasks.signin.transport import WayOut

OWN: Mapping[str, OwnWay] = MappingProxyType({"club.example.com": HashedPassword})
"""Sites with a `user_login` of their own, by name: a class that takes the catalog's rules."""

_SHORTEST_SECRET = 16


def sign_ins(
    settings: Settings, catalog: Catalog, *, address: str | None, clock: Callable[[], datetime]
) -> SignIns:
    """The sign-ins of one node.

    Args:
        address: source address the node asks from; None: the system's choice.
        clock: aware time.

    Raises:
        MissingCredential: a site is to be signed in to, and there is no key to keep that with.
    """
    names = signing(catalog)
    secret = settings.secret_key
    crawl, environment = settings.crawl(), logins()
    # Nobody is asked for a key to keep what nobody gives.
    given = [name for name in names if Credentials(name, environment).any]
    if (given or (names and secret)) and len(secret) < _SHORTEST_SECRET:
        raise MissingCredential(
            f"{catalog.name} signs in to {', '.join(given or names)}: set REVIEWLOOP_SECRET_KEY to "
            f"{_SHORTEST_SECRET} characters or more"
        )
    return SignIns(
        catalog,
        lambda name: Credentials(name, environment),
        Keep(Path(settings.sign_in_file), secret) if names and secret else None,
        WayOut(crawl.user_agent, address, settings.lab, crawl.request_timeout_s),
        clock,
        OWN,
    )
