package jobs_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// pieces are what random templates are made of, beside the parts of the full one.
const pieces = `
- hostNetwork: true
- hostPID: true
- hostUsers: false
- shareProcessNamespace: true
- privileged: true
- allowPrivilegeEscalation: true
- procMount: Unmasked
- runAsUser: 0
- runAsUser: 1000
- runAsNonRoot: false
- runAsNonRoot: true
- capabilities: {add: [SYS_ADMIN]}
- capabilities: {drop: []}
- seccompProfile: {type: Unconfined}
- securityContext: {}
- securityContext: {runAsUser: 0, runAsNonRoot: false}
- securityContext: {privileged: true}
- windowsOptions: {hostProcess: true}
- os: {name: windows}
- os: {name: linux}
- nodeName: node-1
- restartPolicy: Always
- restartPolicy: Never
- terminationGracePeriodSeconds: 86400
- activeDeadlineSeconds: 86400
- serviceAccountName: flex-dispatcher
- automountServiceAccountToken: true
- schedulingGates: [{name: example.com/wait}]
- schedulingGates: []
- finalizers: [example.com/x]
- labels: {flex-provisioner.io/claim-uid: x}
- containers: []
- containers: [{name: provisioner, image: localhost/evil:v1}]
- containers: [{name: other, image: x}]
- containers: [{$patch: replace}]
- containers: [{name: provisioner, $patch: delete}]
- $setElementOrder/containers: [{name: provisioner}]
- $retainKeys: [name]
- $patch: replace
- Containers: [{name: provisioner, image: x, securityContext: {privileged: true}}]
- Spec: {hostPID: true}
- ephemeralContainers: [{name: debug, image: x}]
- initContainers: [{name: provisioner, image: x, restartPolicy: Always}]
- volumes: [{name: v, hostPath: {path: /}}]
- volumes: [{name: v, hostPath: {path: /srv/flex/gold}}]
- volumes: [{name: flex, emptyDir: {}}]
- volumes: [{name: tmp, hostPath: {path: /srv/flex}}]
- hostPath: {path: /etc}
- hostPath: {path: /srv/flex/../../etc}
- volumeMounts: [{name: volumes, mountPath: /etc/flex}]
- volumeMounts: [{name: flex, mountPath: /etc/flex, subPath: x}]
- env: [{name: FLEX_SIZE, value: "1"}]
- env: [{name: HOME, value: /x}]
- env: [{name: HOME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
- envFrom: [{prefix: FLEX_, secretRef: {name: other}}]
- args: [other]
- command: [other]
- image: localhost/evil:v1
- name: provisioner
- terminationMessagePath: /x
- ports: [{containerPort: 80, hostPort: 80}]
- annotations: {container.apparmor.security.beta.kubernetes.io/provisioner: unconfined}
- annotations: {flex-provisioner.io/request: x}
`

// changeAtRandom changes one thing in a template.
func changeAtRandom(t *testing.T, random *rand.Rand, template map[string]any, list []map[string]any) {
	t.Helper()
	all := places(template, "")
	if len(all) == 0 {
		return
	}
	at := all[random.IntN(len(all))]
	switch random.IntN(6) {
	case 0:
		at.remove()
	case 1:
		if random.IntN(4) == 0 {
			at.set(nil)
		}
	case 2:
		values := []any{"", "x", "0", 0, 1, true, false, []any{}, map[string]any{}, "/srv/flex"}
		at.set(values[random.IntN(len(values))])
	case 3: // a part of another place
		if other := all[random.IntN(len(all))]; !strings.HasPrefix(at.path, other.path) {
			at.set(clone(t, other.value))
		}
	default:
		into, ok := at.value.(map[string]any)
		if !ok {
			return
		}
		maps.Copy(into, clone(t, any(list[random.IntN(len(list))])).(map[string]any))
	}
}

func clone(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What is accepted has the contract's parts and passes Pod Security, whatever its template looks
// like.
func TestEveryTemplateThatIsAcceptedMakesARestrictedPodWithTheContract(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 2))
	flags := map[bool]jobs.Allowances{false: nil, true: allow(t, fullFlags...)}
	var list []map[string]any
	if err := yaml.Unmarshal([]byte(pieces), &list); err != nil {
		t.Fatal(err)
	}
	full, accepted := tree(t), 0
	tries, until := 0, time.Now().Add(5*time.Second)
	for ; tries < 3000 && time.Now().Before(until); tries++ {
		template, allowed := clone(t, full).(map[string]any), tries%3 > 0
		if !allowed {
			template = map[string]any{"metadata": map[string]any{}, "spec": map[string]any{"containers": []any{map[string]any{"name": "provisioner"}}, "securityContext": map[string]any{}}}
		}
		for range 1 + random.IntN(3) {
			changeAtRandom(t, random, template, list)
		}
		cfg, faults := judge(t, template, flags[allowed])
		if len(faults) > 0 {
			continue
		}
		accepted++
		if mustHold(t, cfg, allowed); t.Failed() {
			t.Fatalf("of the template\n%s", cfg.Template)
		}
	}
	if accepted < tries/10 || accepted > tries*9/10 {
		t.Errorf("%d of %d were accepted: too few or too many to tell", accepted, tries)
	}
}
