package process

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

func TestWhatAProcessUsedIsReadFromItsFiles(t *testing.T) {
	const stat = "42 (kube) apiserver) S 1 42 42 0 -1 4194560 100 0 0 0 250 50 0 0 20 0 9 0 1000 1000000 500 18446744073709551615\n"
	const status = "Name:\tx\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n"
	got, err := parseUsed("kube-apiserver", stat, status)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(report.Process{Name: "kube-apiserver", CPU: 3, RSS: 100, Peak: 200}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := parseUsed("x", "42 (x) S 1", ""); err == nil {
		t.Error("no error for another format")
	}
	if own, err := usedBy("own", os.Getpid()); err != nil || own.RSS == 0 {
		t.Errorf("of this process: %v, %v", own, err)
	}
}

func TestCPUIsThatBetweenTwoSamples(t *testing.T) {
	before := []Sample{{"etcd", report.Process{Name: "etcd", CPU: 3}}}
	after := []Sample{{"etcd", report.Process{Name: "etcd", CPU: 5, RSS: 1}}, {"7", report.Process{Name: report.Provisioner, CPU: 1}}}
	want := []report.Process{{Name: "etcd", CPU: 2, RSS: 1}, {Name: report.Provisioner, CPU: 1}}
	if diff := cmp.Diff(want, Since(before, after)); diff != "" {
		t.Error(diff)
	}
}
