"""app.tokens: tokens of the REST server; each verb also with the prefix `a`."""

import hmac
import os
from collections.abc import Iterable

import msgspec

from windlass.client.runtime.portal import blocking
from windlass.client.verbs.group import Verbs
from windlass.core.moments import Duration, Micros, duration, to_datetime
from windlass.core.names import check_name
from windlass.core.tokens import (
    MAX_TOKENS,
    Scope,
    Token,
    check_names,
    check_scopes,
    digest_of,
    id_of,
    new_text,
    new_token_id,
)
from windlass.errors import InvalidOption, WindlassError
from windlass.store.documents import Document

KIND = "token"


class TokenNotFound(WindlassError):
    """No valid token has this id."""

    code = "token_not_found"

    def __init__(self, id: str) -> None:
        super().__init__(f"no token {id[:40]!r}")


class _Stored(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A token in the store."""

    name: str
    digest: str
    scopes: tuple[Scope, ...]
    queues: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    keep: Micros | None = None
    last_used_at: Micros | None = None


_decoder = msgspec.json.Decoder(_Stored)


class NewToken(msgspec.Struct, frozen=True):
    """A token and its text, which is shown once."""

    token: Token
    text: str


class Tokens(Verbs):
    """Create, list, revoke and rotate the tokens of the REST server."""

    async def acreate(
        self,
        name: str,
        scopes: Iterable[str],
        *,
        queues: Iterable[str] = (),
        types: Iterable[str] = (),
        expires: Duration | None = None,
    ) -> NewToken:
        """A new token. Its text is in the answer and nowhere else.

        `queues` and `types` limit it to those; `expires` is the time after which it is invalid.
        """
        keep = None if expires is None else duration(expires, "expires")
        if keep == 0:
            raise InvalidOption("expires", "must be more than 0 seconds")
        id_ = new_token_id(os.urandom)
        text = new_text(id_, os.urandom)
        stored = _Stored(
            name=check_name(name, "name"),
            digest=digest_of(text),
            scopes=check_scopes(scopes),
            queues=check_names(queues, "queues"),
            types=check_names(types, "types"),
            keep=keep,
        )
        store = await self._home._ready()
        if len(await store.documents.list(KIND, MAX_TOKENS)) >= MAX_TOKENS:
            raise InvalidOption("tokens", f"there are {MAX_TOKENS} already; revoke some")
        await store.documents.add(KIND, id_, _text(stored), keep)
        token = await self.aget(id_)
        await self._audit("token.create", id_, after=token)
        return NewToken(token, text)

    async def aget(self, id: str) -> Token:
        """One token, without its secret."""
        return _token(await self._document(id))

    async def alist(self) -> list[Token]:
        """The valid tokens."""
        store = await self._home._ready()
        return [_token(each) for each in await store.documents.list(KIND, MAX_TOKENS)]

    async def arevoke(self, id: str) -> None:
        """Make a token invalid. Servers notice within 5 seconds."""
        before = await self.aget(id)
        await (await self._home._ready()).documents.delete(KIND, [id])
        await self._audit("token.revoke", id, before=before)

    async def arotate(self, id: str) -> NewToken:
        """Give a token a new secret: its old text becomes invalid."""
        text = new_text(id, os.urandom)
        while True:
            document = await self._document(id)
            stored = msgspec.structs.replace(_decoder.decode(document.data), digest=digest_of(text))
            store = await self._home._ready()
            if await store.documents.replace(KIND, id, _text(stored), document.version):
                await self._audit("token.rotate", id)
                return NewToken(_token(document), text)

    async def averify(self, text: str) -> Token | None:
        """The token that has this text, if it is valid."""
        id_ = id_of(text)
        return None if id_ is None else await self.averify_digest(id_, digest_of(text))

    async def averify_digest(self, id: str, digest: str) -> Token | None:
        """The token with this id, if it is valid and has not been rotated since its text had this digest."""
        document = (await (await self._home._ready()).documents.get(KIND, [id]))[0]
        if document is None or not hmac.compare_digest(digest, _decoder.decode(document.data).digest):
            return None
        return _token(document)

    async def amark_used(self, id: str, at: Micros) -> None:
        """Note the last use; a concurrent note is as good."""
        store = await self._home._ready()
        document = (await store.documents.get(KIND, [id]))[0]
        if document is not None:
            stored = msgspec.structs.replace(_decoder.decode(document.data), last_used_at=at)
            await store.documents.replace(KIND, id, _text(stored), document.version)

    async def _document(self, id: str) -> Document:
        found = (await (await self._home._ready()).documents.get(KIND, [id]))[0]
        if found is None:
            raise TokenNotFound(id)
        return found

    create = blocking(acreate)
    get = blocking(aget)
    list = blocking(alist)
    revoke = blocking(arevoke)
    rotate = blocking(arotate)
    verify = blocking(averify)
    verify_digest = blocking(averify_digest)
    mark_used = blocking(amark_used)


def _text(stored: _Stored) -> str:
    return msgspec.json.encode(stored).decode()


def _token(document: Document) -> Token:
    stored = _decoder.decode(document.data)
    used = stored.last_used_at
    return Token(
        id=document.id,
        name=stored.name,
        scopes=stored.scopes,
        queues=stored.queues,
        types=stored.types,
        created_at=to_datetime(document.created_at),
        expires_at=None if stored.keep is None else to_datetime(document.created_at + stored.keep),
        last_used_at=None if used is None else to_datetime(used),
    )
