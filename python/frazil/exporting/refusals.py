"""What cannot be exported is refused in one sentence that says where in the model it stands."""


class ExportRefused(ValueError):
    """The model, its inputs or its loss cannot be written to a model file; nothing has been written."""


def refuse(what, path="", source=""):
    """Raises ExportRefused with `what`, the path of the module and the source line, as far as they are known."""
    place = f"module {path}" if path else "the model"
    at = f" ({source})" if source else ""
    raise ExportRefused(f"{place}{at}: {what}")
