"""The .rpm: a spec is written for what was installed below a folder, and rpmbuild packs it."""

import os
import subprocess
import time

SPEC = """\
Name: {name}
Version: {version}
Release: 1
Summary: Caching device allocator for unmodified CUDA programs
License: {licence}
Group: Development/Libraries
Packager: {maintainer}
BuildArch: {machine}
%description
A library to be preloaded serves a program's device allocations from a pool of
best fit with coalescing. Tools start, show and replay such programs.

%files
{files}

%changelog
* {date} {maintainer} - {version}-1
- Release {version}.
"""

# Packed as they are: nothing of the machine's own is done to them.
DEFINITIONS = {
    "__os_install_post": "%{nil}", "debug_package": "%{nil}", "_build_id_links": "none",
    "_buildhost": "localhost", "use_source_date_epoch_as_buildtime": "1", "clamp_mtime_to_source_date_epoch": "1",
    "__requires_exclude": "^/usr/bin/pkg-config$",
    "_binary_payload": "w19.zstdio", "_source_filedigest_algorithm": "8", "_binary_filedigest_algorithm": "8",
}


def file_line(name, path):
    kind = "%doc " if name.startswith(("share/man/", "share/doc/")) else ""
    mode = "0755" if os.access(path, os.X_OK) else "0644"
    return f"%attr({mode},root,root) {kind}/usr/{name}"


def spec(name, version, licence, machine, maintainer, moment, files):
    lines = [file_line(*file) for file in files]
    folders = [f"lib/{name}", f"share/{name}", f"share/{name}/slurm", f"share/doc/{name}", f"share/doc/{name}/licenses",
               f"share/doc/{name}/docs", f"share/doc/{name}/docs/examples"]
    lines += [f"%dir %attr(0755,root,root) /usr/{folder}" for folder in folders]
    date = time.strftime("%a %b %d %Y", time.gmtime(moment))
    return SPEC.format(name=name, version=version, licence=licence, machine=machine, maintainer=maintainer,
                       date=date, files="\n".join(lines))


def build(work, root, machine, moment, text):
    """Packs what lies below `root`/usr; returns the path of the package."""
    path = os.path.join(work, "package.spec")
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    definitions = dict(DEFINITIONS, _topdir=os.path.join(work, "rpm"), _rpmdir=os.path.join(work, "rpms"))
    command = ["rpmbuild", "-bb", "--quiet", "--target", machine, "--buildroot", root]
    for name, value in definitions.items():
        command += ["--define", f"{name} {value}"]
    subprocess.run([*command, path], check=True, env=dict(os.environ, SOURCE_DATE_EPOCH=str(moment)))
    folder = os.path.join(work, "rpms", machine)
    (made,) = os.listdir(folder)
    return os.path.join(folder, made)
