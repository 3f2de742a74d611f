# The statement of how a release was made: in-toto, with the SLSA provenance as its predicate. Input: the lines of sha256sum for all files. It is not
# signed, and names no time and no machine, so that a repetition gives the same bytes.
"https://github.com/flex-provisioner/flex-provisioner" as $project
| {
  _type: "https://in-toto.io/Statement/v1",
  subject: [inputs | capture("^(?<sha256>[0-9a-f]{64}) [ *](?<name>.*)$") | {name, digest: {sha256}}],
  predicateType: "https://slsa.dev/provenance/v1",
  predicate: {
    buildDefinition: {
      buildType: "\($project)/blob/\($commit)/docs/release.md",
      externalParameters: {command: "make release", VERSION: $version, REGISTRY: $registry},
      resolvedDependencies: ([
        {uri: "git+\($project)@\($commit)", digest: {gitCommit: $commit}},
        {uri: "pkg:golang/go@\($go)"}
      ] + [$debian | split("\n")[] | select(. != "") | split(" ") as [$purl, $_, $sha256] | {uri: $purl, digest: {sha256: $sha256}}])
    },
    runDetails: {builder: {id: "\($project)/blob/\($commit)/hack/release/release.sh"}}
  }
}
