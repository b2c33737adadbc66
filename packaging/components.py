"""What the packages contain that others wrote: its versions, its licences, and the list of it all (SPDX 2.3)."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# meson's name of a library: that of its project, its licence, Debian's package of it.
LIBRARIES = {
    "json-c": ("json-c", "MIT", "libjson-c-dev"),
    "libzstd": ("zstd", "BSD-3-Clause", "libzstd-dev"),
    "ncursesw": ("ncurses", "X11-distribute-modifications-variant", "libncurses-dev"),
    "libmicrohttpd": ("libmicrohttpd", "LGPL-2.1-or-later", "libmicrohttpd-dev"),
}


class Component:
    """`text`: the file with its licence; `files`: where it stands in our sources, if it does."""

    def __init__(self, name, version, licence, relation, text, files=None):
        self.name, self.version, self.licence, self.relation = name, version, licence, relation
        self.text, self.files = text, files

    def licence_text(self):
        try:
            with open(self.text, "rb") as file:
                return file.read()
        except OSError as error:
            sys.exit(f"package: no text of {self.name}'s licence: {error}")


def plotting_library():
    folder = os.path.join(ROOT, "tools", "report", "uplot")
    with open(os.path.join(folder, "uPlot.iife.min.js"), encoding="utf-8") as file:
        version = re.search(r"\(v([0-9.]+)\)", file.readline()).group(1)
    return Component("uPlot", version, "MIT", "CONTAINS", os.path.join(folder, "LICENSE"),
                     "tools/report/uplot/*")


def of_build(folder, static, microhttpd):
    """The libraries that a build folder of meson is linked with; `static`: that are in its programs."""
    shown = subprocess.run(["meson", "introspect", "--dependencies", folder], check=True, stdout=subprocess.PIPE)
    found = [plotting_library()]
    for library in json.loads(shown.stdout):
        if library["name"] in LIBRARIES:
            name, licence, package = LIBRARIES[library["name"]]
            text = os.path.join("/usr/share/doc", package, "copyright")
            if name == "libmicrohttpd" and microhttpd:
                text = os.path.join(microhttpd, "share/doc/libmicrohttpd/copyright")
            found.append(Component(name, library["version"], licence,
                                   "STATIC_LINK" if static else "DYNAMIC_LINK", text))
    return sorted(found, key=lambda component: component.name)


def spdx_package(name, version, licence, **more):
    return {"SPDXID": "SPDXRef-Package-" + name, "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "licenseConcluded": licence, "licenseDeclared": licence,
            "copyrightText": "NOASSERTION", **more}


def licence_of_all(own, components):
    """As SPDX writes it: of a file that is made of `own` and of what the components put into it."""
    inside = {component.licence for component in components if component.relation != "DYNAMIC_LINK"}
    return " AND ".join([own, *sorted(inside - {own})])


def spdx_file(number, name, data):
    return {"SPDXID": f"SPDXRef-File-{number}", "fileName": "./" + name, "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION",
            "checksums": [{"algorithm": kind, "checksumValue": hashlib.new(kind, data).hexdigest()}
                          for kind in ("SHA1", "SHA256")]}


def bill_of_materials(name, version, moment, files, components):
    """SPDX 2.3 as JSON: the files, pairs of a name and its bytes, with their hashes, and the components."""
    listed = [spdx_file(number, *file) for number, file in enumerate(files)]
    hashes = "".join(sorted(file["checksums"][0]["checksumValue"] for file in listed))
    code = hashlib.sha1(hashes.encode()).hexdigest()
    main = spdx_package(name, version, "Apache-2.0", filesAnalyzed=True,
                        packageVerificationCode={"packageVerificationCodeValue": code})
    others = [spdx_package(c.name, c.version, c.licence, filesAnalyzed=False) for c in components]
    relations = [("SPDXRef-DOCUMENT", "DESCRIBES", main["SPDXID"])]
    relations += [(main["SPDXID"], "CONTAINS", file["SPDXID"]) for file in listed]
    relations += [(main["SPDXID"], c.relation, other["SPDXID"]) for c, other in zip(components, others)]
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{version}", "documentNamespace": f"urn:spdx:{name}-{version}-{code}",
        "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(moment)),
                         "creators": ["Tool: scripts/package"]},
        "packages": [main, *others], "files": listed,
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b}
                          for a, kind, b in relations],
    }
    return (json.dumps(document, indent=1) + "\n").encode()
