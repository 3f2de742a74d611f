# The SPDX 2.3 document of a release. Input: of each binary what "go version -m -json" says, with its name, its system and its SHA-256; $debian lists
# the packages of Debian in the images of scripts.
def id: "SPDXRef-" + gsub("[^A-Za-z0-9.-]"; "-");
def package($name; $version; $purl): {
  SPDXID: ($purl | id), name: $name, versionInfo: $version, downloadLocation: "NOASSERTION", filesAnalyzed: false,
  licenseConcluded: "NOASSERTION", licenseDeclared: "NOASSERTION", copyrightText: "NOASSERTION",
  externalRefs: [{referenceCategory: "PACKAGE-MANAGER", referenceType: "purl", referenceLocator: $purl}]
};
def dependency: (.Replace // .) | package(.Path; .Version; "pkg:golang/\(.Path)@\(.Version | @uri)") + {sourceInfo: "go.sum: \(.Sum)"};
def standard_library: (.GoVersion | ltrimstr("go")) as $v | package("stdlib"; $v; "pkg:golang/stdlib@\($v)");
def ours: package(.name; $version; "pkg:golang/\(.Path)@\($version)?arch=\(.arch)&os=\(.os)") +
  {licenseDeclared: "Apache-2.0", primaryPackagePurpose: "APPLICATION", checksums: [{algorithm: "SHA256", checksumValue: .sha256}]};

[.[] | {binary: ours, parts: [(.Deps[]? | dependency), standard_library]}] as $binaries
| [$debian | split("\n")[] | select(. != "") | split(" ") as [$purl, $version, $sha256]
   | package($purl | capture("debian/(?<name>[^@]*)").name; $version; $purl) + {checksums: [{algorithm: "SHA256", checksumValue: $sha256}]}] as $debian
| {
  spdxVersion: "SPDX-2.3", dataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", name: "flex-provisioner \($version)",
  documentNamespace: "https://github.com/flex-provisioner/flex-provisioner/releases/\($version)/sbom-\($commit)",
  creationInfo: {created: $created, creators: ["Tool: flex-provisioner-hack-release"]},
  packages: ([$binaries[] | .binary, .parts[]] + $debian | unique_by(.SPDXID)),
  relationships: ([$binaries[] | .binary.SPDXID as $b
      | {spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: $b},
        (.parts[] | {spdxElementId: $b, relationshipType: "CONTAINS", relatedSpdxElement: .SPDXID})]
    + [$debian[] | {spdxElementId: "SPDXRef-DOCUMENT", relationshipType: "DESCRIBES", relatedSpdxElement: .SPDXID}])
}
