package cindertest

// The details of a connection of each backend, as they were captured.

func (v *disk) iscsi() map[string]any {
	return v.common(map[string]any{
		"target_discovered": false,
		"target_portal":     "127.0.0.1:3260",
		"target_iqn":        "iqn.2010-10.org.openstack:volume-" + v.ID,
		"target_lun":        1,
		"volume_id":         v.ID,
		"auth_method":       "CHAP",
		"auth_username":     "user-" + v.ID[:8],
		"auth_password":     Password(v.ID),
	})
}

// portals adds the lists that a multipath connector is sent.
func (v *disk) portals(multipath bool) map[string]any {
	data := v.iscsi()
	if multipath {
		iqn := data["target_iqn"]
		data["target_portals"] = []string{"127.0.0.1:3260", "127.0.0.2:3260"}
		data["target_iqns"] = []any{iqn, iqn}
		data["target_luns"] = []int{1, 1}
	}
	return data
}

func (v *disk) fibre() map[string]any {
	wwns := []string{"524A937AAABBCC00", "524A937AAABBCC01"}
	return v.common(map[string]any{
		"target_discovered":    true,
		"target_lun":           1,
		"target_wwn":           wwns,
		"discard":              true,
		"target_luns":          []int{1, 1},
		"target_wwns":          wwns,
		"wwn":                  "3624a9370" + v.ID[:8],
		"initiator_target_map": map[string]any{"50014380186b3f64": wwns, "50014380186b3f66": wwns},
	})
}

func (v *disk) rbd() map[string]any {
	return v.common(map[string]any{
		"name":          "volumes/volume-" + v.ID,
		"hosts":         []string{"127.0.0.1"},
		"ports":         []string{"6789"},
		"cluster_name":  "ceph",
		"auth_enabled":  true,
		"auth_username": "cinder",
		"secret_type":   "ceph",
		"secret_uuid":   libvirtNumber,
		"volume_id":     v.ID,
		"discard":       true,
	})
}

// libvirtNumber identifies the key to libvirt. It is not the key.
const libvirtNumber = "457eb676-33da-42ec-9a8c-9293d545c337"

func (v *disk) nvme() map[string]any {
	return v.common(map[string]any{
		"target_portal":  "127.0.0.1",
		"target_port":    "4420",
		"nqn":            "nqn.2014-08.org.nvmexpress:uuid-" + v.ID,
		"transport_type": "tcp",
		"ns_id":          "10",
	})
}

// common adds what Cinder's manager adds to every backend's answer.
func (v *disk) common(data map[string]any) map[string]any {
	data["qos_specs"] = nil
	data["access_mode"] = "rw"
	data["encrypted"] = v.Encrypted
	data["cacheable"] = false
	if v.release >= antelope {
		data["enforce_multipath"] = false
	}
	return data
}

// antelope is the first release of which enforce_multipath is known here. It is in 26 and not in
// 21.
const antelope = 22
