"""What cannot be exported is refused in one sentence that says where in the model it stands."""

from ..errors import ExportRefused


def refuse(what, path="", source="", whole="the model"):
    """Raises ExportRefused with `what`, the path of the module (else what it is said of as a whole) and the source line, as far as known."""
    place = f"module {path}" if path else whole
    at = f" ({source})" if source else ""
    raise ExportRefused(f"{place}{at}: {what}")
