"""All sections: every class ``…Settings`` of this package's modules that declares settings."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

from triplicate.config.loader import keys_of, section_of


def all_sections() -> dict[str, type]:
    """Settings dataclasses by section name, sorted. They are discovered, so that a new module needs no entry in a list.

    Raises:
        ValueError: two classes have the same section.
    """
    package = importlib.import_module(__package__)
    found: dict[str, type] = {}
    for module_info in pkgutil.iter_modules(package.__path__):
        if module_info.name == "reference":
            continue
        module = importlib.import_module(f"{__package__}.{module_info.name}")
        for name, value in vars(module).items():
            ours = isinstance(value, type) and value.__module__ == module.__name__ and dataclasses.is_dataclass(value)
            if ours and name.endswith("Settings") and any(True for _ in keys_of(value)):
                section = section_of(value)
                if section in found:
                    raise ValueError(f"section {section} is declared twice: {found[section]} and {value}")
                found[section] = value
    return dict(sorted(found.items()))
