package config_test

import (
	"strings"
	"testing"
)

func TestASelectorThatAKubeletCanSatisfyByItselfIsWarnedOf(t *testing.T) {
	const own, restricted = "storage=fast", "node-restriction.kubernetes.io/flex-storage-network=true"
	for selector, want := range map[string]string{
		own:                                   "storage",
		"example.com/storage=":                "example.com/storage",
		"storage=fast,rack=7":                 "rack,storage",
		"kubernetes.io/hostname=n1":           "kubernetes.io/hostname",
		"node.kubernetes.io/pool=a":           "node.kubernetes.io/pool",
		"a.kubelet.kubernetes.io/b=":          "a.kubelet.kubernetes.io/b",
		"kubernetes.io=":                      "kubernetes.io",
		"notkubernetes.io/storage=":           "notkubernetes.io/storage",
		"storage=fast,kubernetes.io/os=linux": "storage",
		restricted:                            "",
		"storage=fast," + restricted:          "",
		"a.node-restriction.kubernetes.io/b=": "",
		"node-role.kubernetes.io/storage=":    "",
		"kubernetes.io/os=linux":              "",
		"kubernetes.io/arch=arm64":            "",
		"":                                    "",
	} {
		mustWarn(t, parse(t, source(set("node-selector", selector))).Warnings, selector, want)
	}
	inTemplate := set("pod-template", "spec: {nodeSelector: {node-restriction.kubernetes.io/flex-storage-network: \"true\"}}")
	mustWarn(t, parse(t, source(set("node-selector", own), inTemplate)).Warnings, "in the template as well", "")
	mustWarn(t, parse(t, source(set("pod-template", "spec: {nodeSelector: {disk: ssd}}"))).Warnings, "in the template alone", "disk")
}

// mustWarn checks that one warning names the labels and the remedy, or that there is none.
func mustWarn(t *testing.T, got []string, selector, labels string) {
	t.Helper()
	switch {
	case labels == "" && len(got) == 0:
	case labels == "" || len(got) != 1:
		t.Errorf("%s: the warnings are %q", selector, got)
	case !strings.Contains(got[0], "selected by "+labels+", which") || !strings.Contains(got[0], "node-restriction.kubernetes.io"):
		t.Errorf("%s: the warning %q lacks %s or the remedy", selector, got[0], labels)
	}
}
