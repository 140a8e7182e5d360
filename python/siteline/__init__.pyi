import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any, Literal, overload

from ._capture import CaptureReport as CaptureReport

__version__: str

class ProviderError(RuntimeError):
    """The package's MLIR cannot be used; the message names the library and what it lacks."""

class Settings:
    """How sites are chosen. The options are those of the command line."""

    def __init__(
        self,
        *,
        policy: str = "distinct",
        leaves: str = "all",
        library: Sequence[str] = (),
        leaf: Sequence[str] = (),
        origin: Literal["keep", "drop"] = "keep",
        infer: bool = True,
    ) -> None: ...
    @property
    def library(self) -> list[str]:
        """The globs of `library`."""
    @property
    def infer(self) -> bool:
        """Whether operations without a usable location get one."""

class Report:
    """What a rewrite did."""

    @property
    def functions(self) -> int:
        """Device functions worked on."""
    @property
    def operations(self) -> int:
        """Operations in them."""
    @property
    def changed(self) -> int:
        """Operations whose location changed."""
    @property
    def inferred(self) -> int:
        """Operations without a usable location that got an inferred one."""
    @property
    def library(self) -> str:
        """The library whose MLIR was used."""

@overload
def rewrite(op: Any, settings: Settings) -> Report: ...
@overload
def rewrite(
    op: Any,
    settings: None = None,
    *,
    policy: str = "distinct",
    leaves: str = "all",
    library: Sequence[str] = (),
    leaf: Sequence[str] = (),
    origin: Literal["keep", "drop"] = "keep",
    infer: bool = True,
) -> Report:
    """Sets the location of every operation at and below `op` to its site.

    `op` is an operation, an operation's view or a module of an MLIR Python package. Raises
    `TypeError` for anything else, `ValueError` for settings that cannot be read and
    `ProviderError` where the package's MLIR cannot be used.
    """

def restore(op: Any) -> int:
    """Puts back the locations that `rewrite` replaced; returns how many operations changed.

    What was rewritten with `origin="drop"` stays.
    """

@overload
def scopes(op: Any, settings: Settings) -> int: ...
@overload
def scopes(
    op: Any,
    settings: None = None,
    *,
    library: Sequence[str] = (),
    origin: Literal["keep", "drop"] = "keep",
    infer: bool = True,
) -> int:
    """Makes the debug-info scopes of the LLVM-dialect device functions at and below `op`.

    For the end of a pipeline, before MLIR's own scope pass, which loses middle frames and
    functions' names. With `infer`, what lowering left without a line first gets one. Returns how
    many functions got scopes. Raises `ValueError` where MLIR lacks the LLVM dialect.
    """

@overload
def refine(content: bytes, settings: Settings, *, fill: bool = False) -> bytes: ...
@overload
def refine(
    content: bytes,
    settings: None = None,
    *,
    fill: bool = False,
    policy: str = "distinct",
    leaves: str = "all",
    library: Sequence[str] = (),
    leaf: Sequence[str] = (),
) -> bytes:
    """A finished code object whose every line row shows its site; what is loaded stays as it is.

    `content` is a code object, an offload bundle, a host file or MLIR with code objects in it.
    `fill` gives the line of the instruction that they serve to instructions without one. Raises
    `ValueError` for what is no such file, is damaged or cannot be rewritten.
    """

@overload
def report(op: Any, settings: Settings) -> dict[str, Any]: ...
@overload
def report(
    op: Any,
    settings: None = None,
    *,
    policy: str = "distinct",
    leaves: str = "all",
    library: Sequence[str] = (),
    leaf: Sequence[str] = (),
) -> dict[str, Any]:
    """The chains, sites and coverage of the device functions at and below `op`.

    The form is that of `siteline opt --passes report`.
    """

def waits(
    content: bytes, settings: Settings | None = None, *, leaf: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """What each wait of the kernels in a code object waits for.

    The form is that of a kernel in `siteline waits --json`, with the lines that the object has.
    Raises `ValueError` for what is no code object, for a chip whose counters are not known, and
    where no disassembler is found.
    """

def provider(package: str) -> os.PathLike[str]:
    """The library whose MLIR is used for a package, such as `flydsl._mlir`."""

def capture(*bindings: ModuleType) -> AbstractContextManager[list[CaptureReport]]:
    """Gives every operation that is built in the block its whole Python call stack as location.

    See `siteline._capture.capture`.
    """
