package input_test

import (
	"fmt"
	"testing"
)

// What the config says about ports and portals reaches the source.
func TestPortsAndPortalsReachTheSource(t *testing.T) {
	task, err := with(t, map[string]string{
		"wwpns": "50014380186b3f64, 50014380186b3f66", "shared-lun": "true", "portals": "192.0.2.1, 2001:db8::/32,198.51.100.0/24",
	}, nil)
	if err != nil || task.Fabric.Ports != 2 || task.Fabric.SharedLUN == nil || !*task.Fabric.SharedLUN {
		t.Errorf("ports %+v, %v", task.Fabric, err)
	}
	if got := fmt.Sprint(task.Portals); got != "[192.0.2.1/32 2001:db8::/32 198.51.100.0/24]" {
		t.Errorf("portals %s", got)
	}
	if task, err = with(t, nil, nil); err != nil || task.Fabric.Ports != 0 || task.Fabric.SharedLUN != nil || task.Portals != nil {
		t.Errorf("by default %+v, %v, %v", task.Fabric, task.Portals, err)
	}
}
