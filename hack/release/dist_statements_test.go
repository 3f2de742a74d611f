//go:build dist

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	provenance "github.com/in-toto/attestation/go/predicates/provenance/v1"
	intoto "github.com/in-toto/attestation/go/v1"
	spdx "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx/v2/v2_3"
	"github.com/spdx/tools-golang/spdxlib"
	"google.golang.org/protobuf/encoding/protojson"
)

// binaries are the programs that are shipped.
var binaries = []string{"flex-dispatcher", "cinder-provisioner", "flex", "kubectl-flex"}

// The document is read by the library of SPDX itself, and has what is in the images.
func TestSBOMListsTheProgramsAndWhatIsInThem(t *testing.T) {
	document, err := spdx.Read(bytes.NewReader(text(t, "sbom.spdx.json")))
	if err == nil {
		err = spdxlib.ValidateDocument(document)
	}
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string][]*v2_3.Package{}
	for _, p := range document.Packages {
		packages[p.PackageName] = append(packages[p.PackageName], p)
	}
	// Those of flex-shell are of another Debian than those of the recipes.
	counts := map[string]int{}
	for _, name := range append([]string{"bash-static", "busybox-static", "curl", "libc6", "passwd", "k8s.io/client-go", "stdlib"}, binaries...) {
		counts[name] = len(packages[name])
	}
	if want := map[string]int{"bash-static": 2, "busybox-static": 2, "curl": 2, "libc6": 2, "passwd": 0, "k8s.io/client-go": 1, "stdlib": 1, "flex-dispatcher": 2, "cinder-provisioner": 2, "flex": 2, "kubectl-flex": 4}; !maps.Equal(counts, want) {
		t.Errorf("there are %v, want %v", counts, want)
	}
	_, index := layoutOf(t, "flex-dispatcher")
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		sum := sumOf(content(t, one)["flex-dispatcher"])
		if !slices.ContainsFunc(packages["flex-dispatcher"], func(p *v2_3.Package) bool { return p.PackageChecksums[0].Value == sum }) {
			t.Errorf("%s: no package has the SHA-256 %s", m.Platform, sum)
		}
	}
}

// The statement is read by the libraries of in-toto, and is about every file but the list of sums,
// which has the statement in it.
func TestProvenanceIsAboutEachFile(t *testing.T) {
	var statement intoto.Statement
	if err := protojson.Unmarshal(text(t, "provenance.json"), &statement); err != nil {
		t.Fatal(err)
	}
	if err := statement.Validate(); err != nil {
		t.Error(err)
	}
	want := sums(t)
	delete(want, "provenance.json")
	got := map[string]string{}
	for _, subject := range statement.GetSubject() {
		got[subject.GetName()] = subject.GetDigest()["sha256"]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var predicate provenance.Provenance
	encoded, err := json.Marshal(statement.GetPredicate().AsMap())
	if err == nil {
		err = protojson.Unmarshal(encoded, &predicate)
	}
	if err == nil {
		err = predicate.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	commit := predicate.GetBuildDefinition().GetResolvedDependencies()[0].GetDigest()["gitCommit"]
	if _, index := layoutOf(t, "flex-dispatcher"); !strings.Contains(fmt.Sprint(labelsOf(t, index)), "org.opencontainers.image.revision:"+commit) || len(commit) != 40 {
		t.Errorf("the commit is %q, and the images say %v", commit, labelsOf(t, index))
	}
}

func labelsOf(t *testing.T, index v1.ImageIndex) map[string]string {
	t.Helper()
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	one, err := index.Image(manifest.Manifests[0].Digest)
	if err != nil {
		t.Fatal(err)
	}
	file, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return file.Config.Labels
}
