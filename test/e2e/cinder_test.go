//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cinderAccount is the storage administrator: where Cinder is, with keystone and a project in it,
// and a token.
type cinderAccount struct{ url, token string }

// administrator asks the lab once: its token outlives the tests.
var administrator = sync.OnceValues(func() (cinderAccount, error) {
	out, err := exec.CommandContext(context.Background(), "../cinder/token.sh").Output()
	if err != nil {
		return cinderAccount{}, fmt.Errorf("ask the lab how to reach Cinder: %w", err)
	}
	url, token, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if !found {
		return cinderAccount{}, fmt.Errorf("../cinder/token.sh says %q", out)
	}
	return cinderAccount{url: url, token: token}, nil
})

// volume is a volume as Cinder describes it.
type volume struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Size     int               `json:"size"`
	Type     string            `json:"volume_type"`
	Metadata map[string]string `json:"metadata"`
	SourceID string            `json:"source_volid"`
	Project  string            `json:"os-vol-tenant-attr:tenant_id"`
}

// cinderClient knows no proxy.
var cinderClient = http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}

// askCinder reads one of its resources, as the administrator.
func askCinder(ctx context.Context, path string, into any) error {
	account, err := administrator()
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, account.url+path, http.NoBody)
	if err != nil {
		return err
	}
	request.Header.Set("X-Auth-Token", account.token)
	answer, err := cinderClient.Do(request)
	if err != nil {
		return fmt.Errorf("ask Cinder for %s: %w", path, err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("ask Cinder for %s: %s", path, answer.Status)
	}
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil {
		return fmt.Errorf("read Cinder's answer: %w", err)
	}
	return nil
}

// cinderVolumes lists the volumes of all projects.
func cinderVolumes(ctx context.Context) ([]volume, error) {
	var body struct {
		Volumes []volume `json:"volumes"`
	}
	err := askCinder(ctx, "/volumes/detail?all_tenants=1&limit=1000", &body)
	return body.Volumes, err
}

// quotaUsed is how many volumes of a project Cinder's own books count, and how many they hold back.
func quotaUsed(ctx context.Context, project string) (used, reserved int, err error) {
	var body struct {
		Set struct {
			Volumes struct {
				Used     int `json:"in_use"`
				Reserved int `json:"reserved"`
			} `json:"volumes"`
		} `json:"quota_set"`
	}
	err = askCinder(ctx, "/os-quota-sets/"+project+"?usage=True", &body)
	return body.Set.Volumes.Used, body.Set.Volumes.Reserved, err
}

// volumesOf lists the volumes whose metadata or name carry a claim's UID.
func volumesOf(ctx context.Context, uid string) ([]volume, error) {
	every, err := cinderVolumes(ctx)
	var found []volume
	for _, v := range every {
		if v.Metadata["flex-provisioner.io/claim-uid"] == uid || strings.Contains(v.Name, uid) {
			found = append(found, v)
		}
	}
	return found, err
}

// onlyVolume is the one volume in Cinder that belongs to the claim.
func (w *world) onlyVolume(claim *corev1.PersistentVolumeClaim) volume {
	w.t.Helper()
	found, err := volumesOf(w.ctx(), string(claim.UID))
	w.must(err, "look at Cinder's volumes")
	if len(found) != 1 {
		w.t.Fatalf("Cinder has %d volumes of the claim %s, not one: %v", len(found), claim.Name, found)
	}
	return found[0]
}

// targets is what tgtd exports, in tgtadm's words.
func (w *world) targets() string {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), "../cinder/exec.sh", "tgtadm", "--lld", "iscsi", "--mode", "target", "--op", "show").CombinedOutput()
	w.must(err, "ask tgtd for its targets: "+string(out))
	return string(out)
}

// checkStorage logs in by an initiator in user space, writes a pattern, reads it back through every
// portal of the PV, and is refused with a wrong password by each. It returns the script's words.
func (w *world) checkStorage(source *corev1.ISCSIPersistentVolumeSource, user, password string) string {
	w.t.Helper()
	portals := append([]string{source.TargetPortal}, source.Portals...)
	check := exec.CommandContext(w.ctx(), "../cinder/iscsi-check.sh", strings.Join(portals, ","), source.IQN, strconv.Itoa(int(source.Lun)), user)
	check.Stdin = strings.NewReader(password)
	out, err := check.CombinedOutput()
	w.must(err, "log in to the volume: "+string(out))
	return string(out)
}

// cinder starts or stops one of the lab's services.
func (w *world) cinder(what string) {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), "../cinder/service.sh", what, "cinder").CombinedOutput()
	w.must(err, what+" Cinder: "+string(out))
}
