package mapper_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// captured was sent by a real Cinder.
const captured = `{"target_discovered": false, "target_portal": "127.0.0.1:3260",
 "target_iqn": "iqn.2010-10.org.openstack:volume-6feffd2e-407e-4ab6-b316-4cc0218d4662", "target_lun": 1,
 "volume_id": "6feffd2e-407e-4ab6-b316-4cc0218d4662", "auth_method": "CHAP",
 "auth_username": "2NCVVDP3gvm7fnh3WAQ2", "auth_password": "mPT2Wtxsoj2a8cYV", "encrypted": false,
 "qos_specs": null, "access_mode": "rw", "cacheable": false}`

const iqn = "iqn.2010-10.org.openstack:volume-6feffd2e-407e-4ab6-b316-4cc0218d4662"

func want() mapper.Want {
	return mapper.Want{
		PVName:      "pvc-8d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e",
		VolumeID:    volumeID,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		VolumeMode:  corev1.PersistentVolumeFilesystem,
		Options:     mapper.Options{FSType: "xfs", Initiator: "iqn.2026-11.io.flex-provisioner:nodes"},
		SecretRef:   corev1.SecretReference{Namespace: "ours", Name: "pvc-1"},
	}
}

// connection is the captured one with some fields changed.
func connection(t *testing.T, change map[string]any) volume.Connection {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(captured), &fields); err != nil {
		t.Fatal(err)
	}
	maps.Copy(fields, change)
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return volume.NewConnection("iscsi", data)
}

func TestISCSISourceAndItsSecret(t *testing.T) {
	m, err := mapper.Map(connection(t, nil), want())
	if err != nil {
		t.Fatal(err)
	}
	source := &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: "127.0.0.1:3260", IQN: iqn, Lun: 1, FSType: "xfs", SessionCHAPAuth: true,
		SecretRef:     &corev1.SecretReference{Namespace: "ours", Name: "pvc-1"},
		InitiatorName: new("iqn.2026-11.io.flex-provisioner:nodes"),
	}
	if diff := cmp.Diff(source, m.Source.ISCSI); diff != "" {
		t.Error(diff)
	}
	if m.Secret.Namespace != "ours" || m.Secret.Name != "pvc-1" || m.Secret.Type != "kubernetes.io/iscsi-chap" {
		t.Errorf("the Secret is %v", m.Secret.ObjectMeta)
	}
	credentials := map[string][]byte{
		"node.session.auth.username": []byte("2NCVVDP3gvm7fnh3WAQ2"),
		"node.session.auth.password": []byte("mPT2Wtxsoj2a8cYV"),
	}
	if diff := cmp.Diff(credentials, m.Secret.Data); diff != "" {
		t.Error(diff)
	}
}

func TestISCSISourceFollowsConnectionAndClaim(t *testing.T) {
	tests := map[string]struct {
		change map[string]any
		edit   func(*mapper.Want)
		want   func(*corev1.ISCSIPersistentVolumeSource) bool
	}{
		"a raw device has no file system": {
			edit: func(w *mapper.Want) { w.VolumeMode = corev1.PersistentVolumeBlock },
			want: func(s *corev1.ISCSIPersistentVolumeSource) bool { return s.FSType == "" },
		},
		"no CHAP, no Secret": {
			change: map[string]any{"auth_method": nil, "auth_password": nil},
			want: func(s *corev1.ISCSIPersistentVolumeSource) bool {
				return !s.SessionCHAPAuth && s.SecretRef == nil
			},
		},
		"two portals": {
			change: map[string]any{
				"target_portals": []string{"127.0.0.1:3260", "127.0.0.2:3260"},
				"target_iqns":    []string{iqn, iqn}, "target_luns": []int{1, 1},
			},
			want: func(s *corev1.ISCSIPersistentVolumeSource) bool {
				return s.TargetPortal == "127.0.0.1:3260" && cmp.Equal(s.Portals, []string{"127.0.0.2:3260"})
			},
		},
		"portals of another target cannot be used": {
			change: map[string]any{
				"target_portals": []string{"127.0.0.1:3260", "127.0.0.2:3260"},
				"target_iqns":    []string{iqn, iqn + "-b"}, "target_luns": []int{1, 1},
			},
			want: func(s *corev1.ISCSIPersistentVolumeSource) bool { return len(s.Portals) == 0 },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			if tc.edit != nil {
				tc.edit(&w)
			}
			m, err := mapper.Map(connection(t, tc.change), w)
			if err != nil {
				t.Fatal(err)
			}
			if !tc.want(m.Source.ISCSI) {
				t.Errorf("got %+v", m.Source.ISCSI)
			}
			if (m.Secret != nil) != m.Source.ISCSI.SessionCHAPAuth {
				t.Errorf("a Secret: %t", m.Secret != nil)
			}
		})
	}
}

func TestMapRefusesWhatCannotBeMounted(t *testing.T) {
	kinds := connection(t, nil)
	kinds.Kind = "vmdk"
	iser := connection(t, nil)
	iser.Kind = "iser"
	tests := map[string]struct {
		c     volume.Connection
		modes corev1.PersistentVolumeAccessMode
		claim bool
		text  string
	}{
		"many nodes": {connection(t, nil), corev1.ReadWriteMany, true, "ReadWriteMany is not supported"},
		"encrypted":  {connection(t, map[string]any{"encrypted": true}), "", false, "encrypts its volumes"},
		"a high LUN": {
			connection(t, map[string]any{"target_lun": 256}), "", false, "for new claims use a class whose config has another initiator and host",
		},
		"a target of many volumes": {
			connection(t, map[string]any{"target_iqn": "iqn.2010-06.com.purestorage:flasharray.1234"}), "", false,
			"set write-initiator to false in the class or its config",
		},
		"a long portal": {
			connection(t, map[string]any{"target_portal": "[2001:db8::1234:5678]:3260"}), "", false, "set write-initiator to false",
		},
		"other authentication": {connection(t, map[string]any{"auth_method": "SRP"}), "", false, `"SRP"`},
		"unknown kind":         {kinds, "", false, `connected by "vmdk"`},
		"iSCSI over RDMA":      {iser, "", false, `connected by "iser", which is not supported`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			if tc.modes != "" {
				w.AccessModes = []corev1.PersistentVolumeAccessMode{tc.modes}
			}
			_, err := mapper.Map(tc.c, w)
			u, ok := errors.AsType[*mapper.UnsupportedError](err)
			if !ok || u.Claim != tc.claim || !strings.Contains(u.Reason, tc.text) {
				t.Errorf("got %v, want %q", err, tc.text)
			}
			if early := mapper.Check(w); (early != nil) != tc.claim {
				t.Errorf("before the volume exists: %v", early)
			}
		})
	}
}

// Cinder names no user of a cluster without cephx, and ceph-csi refuses an empty key all the same.
func TestImageOfAClusterWithoutCephxNeedsAKeyToo(t *testing.T) {
	c := capture(t, "rbd", map[string]any{"auth_enabled": false, "auth_username": nil})
	w := want()
	ceph(&w)
	m, err := mapper.Map(c, w)
	if err != nil || string(m.Secret.Data["userID"]) != "admin" || string(m.Secret.Data["userKey"]) != "QVFCa2V5" {
		t.Errorf("with a key: %+v, %v", m, err)
	}
	w.Ceph.Key = ""
	if _, err := mapper.Map(c, w); err == nil || !strings.Contains(err.Error(), "ceph.key") {
		t.Errorf("without a key: %v", err)
	}
}

func TestConnectionIsNeverPrinted(t *testing.T) {
	c := connection(t, nil)
	encoded, err := json.Marshal(map[string]any{"c": c})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("%s %v %+v %#v ", c, c, c, c) + string(encoded)
	if strings.Contains(text, "mPT2Wtxsoj2a8cYV") || strings.Contains(text, "2NCVVDP3gvm7fnh3WAQ2") {
		t.Errorf("a printer shows the credentials: %s", text)
	}
	bad := volume.NewConnection("iscsi", json.RawMessage(`{"target_lun":"mPT2Wtxsoj2a8cYV"}`))
	if _, err := mapper.Map(bad, want()); err == nil || strings.Contains(err.Error(), "mPT2") {
		t.Errorf("the error is %v", err)
	}
}
