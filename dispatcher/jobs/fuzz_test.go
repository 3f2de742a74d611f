package jobs_test

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// A pod-template that is accepted makes a restricted pod with the contract's parts, whatever text
// it is.
func FuzzPodTemplate(f *testing.F) {
	f.Add(fullTemplate)
	f.Add("spec:\n  tolerations: [{key: storage, operator: Exists}]\n")
	f.Add("spec: {containers: [{name: provisioner, $patch: delete}], securityContext: {runAsUser: 0}}")
	f.Add("metadata: {labels: {app: x}, finalizers: [x]}\nspec: &a {volumes: [{name: flex, emptyDir: {}}]}\n")
	f.Add("spec: {resources: {limits: {memory: 1}}, containers: [{name: provisioner, resources: {requests: {memory: 1Ti}, limits: {memory: 0}}}]}")
	f.Fuzz(func(t *testing.T, template string) {
		src := bare(t).Source
		src.Data["pod-template"] = template
		cfg, faults := config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName})
		if len(faults) == 0 && len(jobs.Check(cfg, nil)) == 0 {
			mustHold(t, cfg, false)
		}
	})
}
