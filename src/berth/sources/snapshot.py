"""Snapshots of clusters as ``kubectl get -o json`` or ``-o yaml`` writes them: files and folders into a cluster."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from berth.cluster.cluster import Cluster
from berth.sources.checks import SnapshotError, capped
from berth.sources.files import FileError, Opener, Progress, SourceFile, find_files, is_json, line_and_column
from berth.sources.intake import Intake, Report
from berth.sources.json_stream import JsonSyntaxError, read_objects
from berth.sources.kinds import KINDS
from berth.sources.yaml_documents import YamlSyntaxError, read_documents


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cluster that was loaded, and what has become of all that the snapshot holds."""

    cluster: Cluster
    report: Report

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield what to tell the user: what was taken, what was passed over, warnings."""
        yield f"loaded: {_counts(self.report.taken, list(KINDS)) or 'nothing'}"
        parts = []
        if n_files := self.report.n_files_passed_over:
            parts.append(f"{n_files} file{'s' if n_files > 1 else ''}")
        if kinds := _counts(self.report.passed_over, sorted(self.report.passed_over)):
            parts.append(kinds)
        if parts:
            yield f"passed over: {', '.join(parts)}"
        yield from (f"warning: {warning}" for warning in capped(self.report.warnings))


def load_snapshot(
    paths: Sequence[Path],
    cluster: Cluster | None = None,
    *,
    lenient: bool = False,
    on_progress: Progress | None = None,
) -> Loaded:
    """Load a cluster from JSON and YAML files, packed with gzip or not, and folders of them.

    Parameters
    ----------
    cluster : Cluster, optional
        What to add to; a new one by default. After an error it may hold part of the snapshot.
    lenient : bool
        Skip objects with mistakes, and the rest of files that are broken, with a warning each.
    on_progress : callable, optional
        Told the bytes read so far and in all.

    Raises
    ------
    SnapshotError
        With all mistakes that were found.
    """
    cluster = cluster if cluster is not None else Cluster()
    try:
        sources = find_files(paths)
    except FileError as error:
        raise SnapshotError([str(error)]) from None
    if not sources.files:
        raise SnapshotError(["no snapshot is named: expected files or folders"])
    intake = Intake(cluster, lenient=lenient)
    intake.report.n_files_passed_over = sources.n_others
    opener = Opener(sources.files, on_progress)
    for file in sources.files:
        _load_file(file, opener, intake)
    if not intake.mistakes and not intake.n_objects:
        intake.mistakes = [f"{path}: none of its files holds a Kubernetes object" for path in paths]
    if intake.mistakes:
        raise SnapshotError(intake.mistakes)
    intake.finish()
    return Loaded(cluster, intake.report)


def _load_file(file: SourceFile, opener: Opener, intake: Intake) -> None:
    n_objects, n_mistakes = intake.n_objects, len(intake.mistakes)
    intake.start_file(str(file.path))
    try:
        with opener.open(file) as source:
            if is_json(source):
                for found in read_objects(source, intake.decode, on_list_end=intake.end_list):
                    intake.take(found)
            else:
                number = 1
                for document in read_documents(source):
                    number = intake.take_document(document, number)
    except FileError as error:
        intake.mistakes.append(str(error))
    except JsonSyntaxError as error:
        intake.stumble(f"line {_line(file, error.offset)}: {error.problem}")
    except YamlSyntaxError as error:
        intake.stumble(str(error))
    if intake.n_objects > n_objects or len(intake.mistakes) > n_mistakes:
        return
    if file.named:
        what = "holds no Kubernetes object (one with kind and apiVersion)" if file.size else "is empty"
        intake.mistakes.append(f"{file.path}: the file {what}")
    else:
        intake.report.n_files_passed_over += 1


def _line(file: SourceFile, offset: int) -> str:
    """Return the line that a byte stands in, with its column, as text."""
    with Opener([file], None).open(file) as source:
        line, column = line_and_column(source, offset)
    return f"{line}, column {column}"


def _counts(counts: Counter[str], order: list[str]) -> str:
    return ", ".join(f"{counts[kind]:,} {kind}" for kind in order if counts[kind])
