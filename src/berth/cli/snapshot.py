"""``berth snapshot``: a cluster as one file."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

if TYPE_CHECKING:
    from berth.cluster.cluster import Cluster


def snapshot(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write; - is standard output.")],
    snapshot: Annotated[
        list[Path] | None,
        typer.Option(
            help="File or folder as kubectl get -o json|yaml writes it; repeatable. Without: the demo."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="The store of berth serve: the cluster as its rounds have left it.")
    ] = None,
    config: Annotated[Path | None, typer.Option(help="Settings (berth.yaml).")] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken objects with a warning.")] = False,
) -> None:
    """Write a cluster as one file, a JSON List that every command and kubectl can read.

    A file whose name ends in .gz is packed with gzip.

    Examples:

        berth snapshot --snapshot dump/ --output cluster.json.gz

        berth snapshot --store berth.db --output cluster.json
    """
    from berth.config import load_settings
    from berth.errors import BerthError

    if store is not None and snapshot:
        raise BerthError("--store and --snapshot: give one of them, not both")
    overrides = {"snapshot.paths": tuple(snapshot) if snapshot else None, "snapshot.lenient": lenient or None}
    settings = load_settings(config, os.environ, overrides)
    if store is not None:
        cluster = read_store(store)
    else:
        from berth.cli.inputs import read_cluster

        cluster = read_cluster(settings, _keeping_cluster())
    write(cluster, output)


def _keeping_cluster() -> "Cluster":
    """Return an empty cluster that keeps what pods' status says of resources: 1.36 is the release that reads it."""
    from berth.cluster.cluster import Cluster
    from berth.releases.modern import RELEASE_1_36

    return Cluster(RELEASE_1_36.accounting)


def read_store(path: Path) -> "Cluster":
    """Return the cluster that a store holds.

    Raises
    ------
    BerthError
        There is no store, it holds no cluster, or somebody uses it.
    """
    from berth.errors import BerthError, NotFoundError
    from berth.sources.writer import load_objects
    from berth.store.sqlite import SqliteStore

    if not path.exists():  # opening it would make one
        raise NotFoundError(f"--store: there is no file {path}")
    with SqliteStore(path) as store:
        description = store.held_state()
        if description is None:
            raise BerthError(f"--store: {path} holds no cluster yet; berth serve fills it at its first start")
        typer.echo(f"the store holds {description}", err=True)
        return load_objects(store.objects(), _keeping_cluster())


def write(cluster: "Cluster", output: Path) -> None:
    """Write a cluster to a file, whole or not at all, or to standard output; tell how many objects it has.

    Raises
    ------
    BerthError
        The file can't be written.
    """
    from berth.errors import BerthError
    from berth.sources.writer import write_snapshot

    if str(output) == "-":
        n_objects = write_snapshot(cluster, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    else:
        part = output.with_name(f".{output.name}.part")
        try:
            with part.open("wb") as file:
                n_objects = (
                    _write_packed(cluster, file) if output.suffix == ".gz" else write_snapshot(cluster, file)
                )
            part.replace(output)
        except OSError as error:
            raise BerthError(f"--output: {output} can't be written: {error.strerror}") from None
        finally:
            part.unlink(missing_ok=True)
    typer.echo(f"wrote {n_objects:,} objects", err=True)


def _write_packed(cluster: "Cluster", file: BinaryIO) -> int:
    import gzip

    from berth.sources.writer import write_snapshot

    # Without a time and a name in it: the same cluster, the same bytes.
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
        return write_snapshot(cluster, packed)  # type: ignore[arg-type]
