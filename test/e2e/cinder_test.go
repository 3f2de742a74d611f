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
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cinderAPI is the lab's Cinder, without keystone. The token is user:project; its project, like every
// one that is not hexadecimal, must not stand in the URL.
const (
	cinderAPI   = "http://10.250.0.1:8776/v3"
	cinderToken = "admin:admin"
)

// volume is a volume as Cinder describes it.
type volume struct {
	ID       string            `json:"id"`
	Name     string            `json:"name"`
	Status   string            `json:"status"`
	Size     int               `json:"size"`
	Type     string            `json:"volume_type"`
	Metadata map[string]string `json:"metadata"`
	SourceID string            `json:"source_volid"`
}

// cinderClient knows no proxy.
var cinderClient = http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{}}

// cinderVolumes lists the volumes of all projects.
func cinderVolumes(ctx context.Context) ([]volume, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, cinderAPI+"/volumes/detail?all_tenants=1&limit=1000", http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Auth-Token", cinderToken)
	answer, err := cinderClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask Cinder for its volumes: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask Cinder for its volumes: %s", answer.Status)
	}
	var body struct {
		Volumes []volume `json:"volumes"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return nil, fmt.Errorf("read Cinder's answer: %w", err)
	}
	return body.Volumes, nil
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

// checkStorage logs in by an initiator in user space, writes a pattern and reads it back, and is refused
// with a wrong password. It returns the script's words.
func (w *world) checkStorage(source *corev1.ISCSIPersistentVolumeSource, user, password string) string {
	w.t.Helper()
	check := exec.CommandContext(w.ctx(), "../cinder/iscsi-check.sh", source.TargetPortal, source.IQN, strconv.Itoa(int(source.Lun)), user)
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
