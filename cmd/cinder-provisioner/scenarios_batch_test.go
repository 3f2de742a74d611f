package main

import (
	"fmt"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// One process serves twenty claims with one login, and deletes their volumes with another one.
func TestTwentyClaimsInOneBatch(t *testing.T) {
	eachCinder(t, func(t *testing.T, s store) {
		t.Helper()
		const claims = 20
		r := newRig(t, s, "auto")
		uids := make([]string, claims)
		for i := range uids {
			uids[i] = fmt.Sprintf("%s-%d", r.uid, i)
		}
		r.serve(contract.Provision, uids, 1)
		if got := fmt.Sprint(s.volumes(t, uids...), r.kube.count("secrets"), r.kube.count("persistentvolumes")); got != "20 20 20" {
			t.Errorf("%s volumes, Secrets and PVs", got)
		}
		r.serve(contract.Delete, uids, 2)
		if got := fmt.Sprint(s.volumes(t, uids...), r.kube.count("secrets")); got != "0 0" {
			t.Errorf("%s volumes and Secrets are left", got)
		}
	})
}

// serve executes a verb for a batch, after which keystone has issued so many tokens.
func (r *rig) serve(verb contract.Verb, uids []string, tokens int32) {
	r.t.Helper()
	var requests []contract.Request
	var pvs []map[string]any
	for _, uid := range uids {
		object := r.kube.pv(contract.PVName(uid))
		if object == nil {
			object = skeleton(uid)
		}
		request := r.request(uid)
		request.ClusterUID = "5f6c1a3e-1111-4222-8333-944455556666"
		requests, pvs = append(requests, request), append(pvs, object)
	}
	list := map[string]any{"apiVersion": "v1", "kind": "List", "items": pvs}
	if code := r.ask(verb, list, requests...); code != contract.ExitDone {
		r.t.Errorf("%s ended with %d: %s", verb, code, r.said.String())
	}
	done := 0
	for _, one := range contract.DecodeResults(r.said.String()) {
		if one.IsDone() {
			done++
		}
	}
	if done != len(uids) {
		r.t.Errorf("%s: %d results of %d claims: %s", verb, done, len(uids), r.said.String())
	}
	if r.cinder.tokens != nil && r.cinder.tokens.Load() != tokens {
		r.t.Errorf("%s: keystone has issued %d tokens, want %d", verb, r.cinder.tokens.Load(), tokens)
	}
}
