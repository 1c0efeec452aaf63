#!/usr/bin/env python3
"""Checks compose.yaml: of the services with the same image, one builds it, and the others wait for it.
`scripts/lint-deploy.sh` runs it, with the Python of its own folder.
"""

import collections
import pathlib

import yaml

services = yaml.safe_load((pathlib.Path(__file__).resolve().parent.parent / "compose.yaml").read_text())["services"]
by_image = collections.defaultdict(dict)
for name, service in services.items():
    by_image[service["image"]][name] = service

builders = 0
for image, sharing in by_image.items():
    building = [name for name, service in sharing.items() if "build" in service]
    builders += len(building)
    assert len(building) <= 1, f"{' and '.join(building)} build {image} at the same time"
    for name, service in sharing.items() if building else ():
        if name not in building:
            assert service.get("pull_policy") == "never", f"{name} pulls {image}, which no registry has"
            assert building[0] in service["depends_on"], f"{name} may start without {building[0]}, which builds {image}"
assert builders, "no service builds an image"
