//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clusterUID is the key under which Cinder volumes carry the UID of their cluster.
const clusterUID = "flex-provisioner.io/cluster-uid"

// Two volumes of this cluster stand for nothing any more, and one of them says that it is another
// cluster's. The audit finds the other one alone, and deletes it. Volumes of other tests, which
// make and leave some meanwhile, are not looked for.
func TestAuditFindsAndDeletesAVolumeThatStandsForNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "left")
	class := w.cinderService(map[string]string{"verbs": "provision,delete,list"})
	left, foreign := w.leftVolume(class, "data"), w.leftVolume(class, "foreign")
	own := left.Metadata[clusterUID]
	equal(t, "the volume carries a cluster's UID", own != "", true)
	w.must(markVolume(w.ctx(), foreign.ID, "00000000-0000-4000-8000-000000000000"), "let a volume be another cluster's")

	said, err := w.audit("--storage=" + class)
	equal(t, "an audit that finds something is an error: "+said, err != nil, true)
	contains(t, "what audit said", said, "VolumeLeft: volume "+left.ID)
	contains(t, "what audit said", said, "--fix="+left.ID)
	w.mustNotSay(said, foreign.ID)
	watched := w.begin("audit", "--watch", "--interval=2s", "--storage="+class, "--kubeconfig="+os.Getenv("KUBECONFIG"))
	w.gauge(watched, class, "1", time.Time{})

	said, _ = w.audit("--storage="+class, "--fix="+left.ID+","+foreign.ID)
	contains(t, "what audit said", said, "volume "+left.ID+" of the class "+class+", of the claim "+w.ns+"/data, was deleted")
	contains(t, "what audit said", said, "volume "+foreign.ID+" is not an orphaned volume")
	equal(t, "the volume is in Cinder", w.hasVolume(left.ID), false)
	equal(t, "the volume of another cluster is in Cinder", w.hasVolume(foreign.ID), true)
	said, _ = w.audit("--storage=" + class)
	w.mustNotSay(said, left.ID)
	w.gauge(watched, class, "", time.Now())
	equal(t, "a watching audit that is asked to end fails", w.stop(watched, syscall.SIGTERM), nil)

	w.must(markVolume(w.ctx(), foreign.ID, own), "let the volume be this cluster's again")
	said, _ = w.audit("--storage="+class, "--fix="+foreign.ID)
	contains(t, "what audit said", said, "volume "+foreign.ID+" of the class "+class+", of the claim "+w.ns+"/foreign, was deleted")
	w.leavesNoJobOfAnAudit(ownNamespace)
}

// A class whose image is not said to list is named, and none of its volumes are taken for missing.
func TestAuditNamesAClassThatCannotBeListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "unlisted")
	class, _ := w.service(scripted(deletes+offer, nil))
	claim := w.claim(class, "data")
	w.bound(claim)
	said, err := w.audit("--storage=" + class)
	equal(t, "an audit that cannot list a storage is an error", err != nil, true)
	contains(t, "what audit said", said, "does not have list among its verbs")
	w.mustNotSay(said, string(claim.UID))
}

// hostileNames are names of volumes that a storage may list: as a command to copy, as a finding of
// its own, as an order to a terminal, as all volumes.
var hostileNames = []string{
	"x; touch PWNED #", "x' $(touch PWNED) `touch PWNED` '", "x\nSecretLeft: secret/a -n b\n    touch PWNED", "\x1b[31m\a", "*", "one,two", "--fix=all",
}

// A storage whose list is hostile reaches no further than its own lines: what audit prints moves no
// cursor, and the commands in it, run by a shell, call audit with one volume each.
func TestAHostileListAddsNothingToWhatAuditPrints(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "hostile-list")
	system, err := kube.CoreV1().Namespaces().Get(w.ctx(), "kube-system", metav1.GetOptions{})
	w.must(err, "read the namespace kube-system")
	var list strings.Builder
	for i, name := range hostileNames {
		line, err := json.Marshal(map[string]any{
			"uid": fmt.Sprintf("00000000-0000-4000-8000-%012d", i), "volume": name, "size": 1 << 30, "clusterUID": system.UID, "storageClass": w.ns,
			"claimNamespace": name, "claimName": name, "createdAt": name,
		})
		w.must(err, "write a list")
		list.Write(append(line, '\n'))
	}
	script := fmt.Sprintf("[ $FLEX_VERB = list ] || exit 65\ncat <<'END'\n%sEND\necho '{\"lines\":%d}' >/dev/termination-log\n", list.String(), len(hostileNames))
	class, _ := w.service(scripted(script, map[string]string{"verbs": "provision,delete,list"}))

	said, err := w.audit("--storage=" + class)
	equal(t, "an audit that finds something is an error: "+said, err != nil, true)
	equal(t, fmt.Sprintf("control characters in %q", said), strings.ContainsFunc(strings.ReplaceAll(said, "\n", ""), unicode.IsControl), false)
	var fixed []string
	found, dir := 0, t.TempDir()
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "VolumeLeft: volume ") {
			found++
		}
		if !strings.Contains(line, "--storage="+class) {
			continue
		}
		shell := exec.CommandContext(w.ctx(), "bash", "--norc", "-c", `kubectl() { printf '%s\0' "$@"; }; `+line)
		shell.Dir = dir
		called, err := shell.CombinedOutput()
		w.must(err, "run the command "+line)
		args := strings.Split(strings.TrimSuffix(string(called), "\x00"), "\x00")
		equal(t, "the arguments of "+line, len(args), 4)
		fixed = append(fixed, strings.TrimPrefix(args[3], "--fix="))
	}
	equal(t, "volumes that are found", found, len(hostileNames))
	equal(t, "the volumes that the commands name", inOrder(fixed), inOrder([]string{hostileNames[0], hostileNames[1], hostileNames[3], hostileNames[6]}))
	made, err := os.ReadDir(dir)
	w.must(err, "look at what the commands made")
	equal(t, "files that the commands made", len(made), 0)
}

func inOrder(names []string) string { return fmt.Sprintf("%q", slices.Sorted(slices.Values(names))) }

// audit runs the command, which finds the cluster by $KUBECONFIG as kubectl does.
func (w *world) audit(flags ...string) (string, error) {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), dispatcherBinary, append([]string{"audit"}, flags...)...).CombinedOutput()
	return string(out), err
}

// gauge waits until an audit that watches shows so many volumes of a class that stand for nothing,
// or no such gauge, and has seen everything after a time: there is no such gauge either when the
// storage could not be listed.
func (w *world) gauge(audit *process, class, want string, seenAfter time.Time) {
	w.t.Helper()
	const success = "\nflex_dispatcher_audit_last_success_timestamp_seconds "
	series := `flex_dispatcher_audit_findings{class="` + class + `",kind="VolumeLeft"}`
	w.eventually(2*time.Minute, series+" to be "+strconv.Quote(want), func(ctx context.Context) error {
		page, err := audit.get(ctx, "/metrics")
		if err != nil {
			return err
		}
		is, seen := valueOf(page, series), valueOf(page, success)
		if at, err := strconv.ParseFloat(seen, 64); err != nil || is != want || int64(at) <= seenAfter.Unix() {
			return fmt.Errorf("it is %q, and everything was seen at %q", is, seen)
		}
		return nil
	})
}

// valueOf returns the value of a series on a page of metrics, empty without it.
func valueOf(page, series string) string {
	_, after, _ := strings.Cut(page, series)
	value, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(value)
}

func (w *world) mustNotSay(said, word string) {
	w.t.Helper()
	if strings.Contains(said, word) {
		w.t.Errorf("audit says %s, and should not:\n%s", word, said)
	}
}

// leftVolume returns a volume that stands for nothing: its claim was retained, and then the PV was
// deleted.
func (w *world) leftVolume(class, name string) volume {
	w.t.Helper()
	claim := w.claim(class, name)
	pv, vol := w.bound(claim), w.onlyVolume(claim)
	w.leaves(claim, pv)
	return vol
}

// leaves lets nothing stand for the volume of a claim.
func (w *world) leaves(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) {
	w.t.Helper()
	w.patchPV(pv.Name, `{"spec": {"persistentVolumeReclaimPolicy": "Retain"}}`)
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.eventually(toBind, "the PV to be released", func(ctx context.Context) error {
		now, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{})
		if err == nil && now.Status.Phase != corev1.VolumeReleased {
			err = errors.New("it is " + string(now.Status.Phase))
		}
		return err
	})
	w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), pv.Name, metav1.DeleteOptions{}), "the PV "+pv.Name)
	w.eventually(30*time.Second, "the PV to go", func(ctx context.Context) error {
		if _, err := kube.CoreV1().PersistentVolumes().Get(ctx, pv.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("it is there"), err)
		}
		return nil
	})
}

func (w *world) hasVolume(id string) bool {
	w.t.Helper()
	every, err := cinderVolumes(w.ctx())
	w.must(err, "look at Cinder's volumes")
	for _, v := range every {
		if v.ID == id {
			return true
		}
	}
	return false
}

// markVolume changes, as the storage's administrator, of which cluster a volume is.
func markVolume(ctx context.Context, id, cluster string) error {
	return tellCinder(ctx, "/volumes/"+id+"/metadata", map[string]any{"metadata": map[string]string{clusterUID: cluster}})
}

// leavesNoJobOfAnAudit checks that no list is left, and no record of a delete.
func (w *world) leavesNoJobOfAnAudit(namespace string) {
	w.t.Helper()
	cm, err := kube.CoreV1().ConfigMaps(namespace).Get(w.ctx(), w.ns, metav1.GetOptions{})
	w.must(err, "look at the config")
	w.eventually(30*time.Second, "no Job of a list to be left", func(ctx context.Context) error {
		jobs, err := kube.BatchV1().Jobs(namespace).List(ctx, labelled("app.kubernetes.io/managed-by=flex-dispatcher-audit,flex-provisioner.io/claim-uid="+string(cm.UID)))
		if err == nil && len(jobs.Items) > 0 {
			err = fmt.Errorf("there are %d", len(jobs.Items))
		}
		return err
	})
}
