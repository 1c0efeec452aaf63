"""What the packages hold besides the code."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
REPOSITORY = PROJECT.parents[1]
BUILD = "import sys, hatchling.build as b; b.build_sdist(sys.argv[1]); b.build_wheel(sys.argv[1])"


def test_both_packages_have_the_licences(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=PROJECT, check=True)
    (sdist,), (wheel,) = tmp_path.glob("*.tar.gz"), tmp_path.glob("*.whl")
    licences = sorted(REPOSITORY.glob("LICENSE-*"))
    assert len(licences) == 2
    with tarfile.open(sdist) as tar, zipfile.ZipFile(wheel) as archive:
        for licence in licences:
            (of_tar,) = (name for name in tar.getnames() if name.endswith(f"/{licence.name}"))
            (of_wheel,) = (name for name in archive.namelist() if name.endswith(licence.name))
            file = tar.extractfile(of_tar)
            assert file
            # Copies, as a link would leave the source package without them.
            assert file.read() == archive.read(of_wheel) == licence.read_bytes()
