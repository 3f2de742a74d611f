package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// listed is one line of a list.
type listed struct {
	contract.Listed

	VolumeName string `json:"name"`
	Status     string `json:"status"`
	Type       string `json:"type"`
	Zone       string `json:"zone"`
	PV         string `json:"pvName"`
	Cluster    string `json:"cluster,omitempty"`
}

// list writes a line for every volume that carries a claim's UID, and the cluster's name where the
// config has one.
func (r *Runner) list(ctx context.Context, task input.Task) (Report, error) {
	all, err := r.keeper.List(ctx, task.Volume.Cluster)
	if err != nil {
		return Report{}, err
	}
	var out strings.Builder
	for _, v := range all {
		line, err := json.Marshal(listing(v))
		if err != nil {
			return Report{}, fmt.Errorf("list volume %s: %w", v.ID, err)
		}
		out.Write(line)
		out.WriteByte('\n')
	}
	return Report{Output: out.String(), Message: fmt.Sprintf("%d volumes listed in the log\n%s", len(all), contract.EncodeListEnd(len(all)))}, nil
}

// createdAt returns when Cinder made a volume, empty if it does not say that.
func createdAt(v volume.Volume) string {
	if v.Created.IsZero() {
		return ""
	}
	return v.Created.UTC().Format(time.RFC3339)
}

func listing(v volume.Volume) listed {
	return listed{
		Listed: contract.Listed{
			UID: v.UID(), Volume: v.ID, Size: int64(v.SizeGiB) << 30, ClusterUID: v.Metadata[volume.KeyClusterUID],
			Namespace: v.Metadata[contract.Domain+"claim-namespace"],
			Name:      v.Metadata[contract.Domain+"claim-name"],
			Class:     v.Metadata[contract.Domain+"storage-class"],
			CreatedAt: createdAt(v),
		},
		VolumeName: v.Name, Status: v.Status, Type: v.Type, Zone: v.Zone,
		PV:      v.Metadata[contract.Domain+"pv-name"],
		Cluster: v.Metadata[volume.KeyCluster],
	}
}
