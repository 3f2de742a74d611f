package run_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Templates of pods: of one that is privileged, of one that mounts a directory of its node, and of
// one with a token.
const (
	privileged = `
spec:
  hostPID: true
  containers: [{name: provisioner, securityContext: {privileged: true, allowPrivilegeEscalation: true}}]`
	directory = `
spec:
  volumes: [{name: node, hostPath: {path: /srv/volumes}}]`
	token = `
spec:
  containers: [{name: provisioner, volumeMounts: [{name: token, mountPath: /token}]}]
  volumes: [{name: token, projected: {sources: [{serviceAccountToken: {path: token}}]}}]`
)

// The dispatcher refuses each of these configs. The right to edit one gives no more by an audit,
// which has an administrator's rights.
func TestAnAuditCreatesNoJobByAConfigThatTheDispatcherRefuses(t *testing.T) {
	t.Parallel()
	unlabelled := account("strong")
	unlabelled.Labels = nil
	for name, test := range map[string]struct {
		keys map[string]string
		want []string
	}{
		"a ServiceAccount that is not a provisioner's": {map[string]string{"service-account-name": "strong"}, []string{"strong", contract.LabelProvisioner + "=true"}},
		"a ServiceAccount that does not exist":         {map[string]string{"service-account-name": "none"}, []string{"none", "does not exist"}},
		"a privileged pod":                             {map[string]string{"pod-template": privileged}, []string{"privileged", "no flag --allow", "change the pod template"}},
		"a directory of a node":                        {map[string]string{"pod-template": directory}, []string{"hostPath", "give the audit the same one"}},
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, test.keys, func(l *lab) {
				l.started = func(job *batchv1.Job) { l.t.Errorf("the Job %s was created", job.Name) }
				l.mustFail(test.want...)
				if said, err := l.fixing(left(func(*audit.Volume) {})); err == nil || !strings.Contains(said, test.want[0]) {
					l.t.Errorf("a fix said %q, %v", said, err)
				}
			}, ours(), unlabelled)
		})
	}
}

func TestAnAuditListsByAPodThatTheDispatchersFlagAllows(t *testing.T) {
	inLab(t, map[string]string{"pod-template": directory}, func(l *lab) {
		l.Allowed = jobs.Allowances{}
		if err := l.Allowed.Add("flex-provisioner/host-path=/srv/volumes"); err != nil {
			l.t.Fatal(err)
		}
		l.ends(0, contract.EncodeListEnd(0), "")
		if got, err := l.Look(l.t.Context(), run.Storages{All: true}); err != nil || len(got.Faults) > 0 || len(got.State.Volumes) != 1 {
			l.t.Errorf("faults %v, listed %v, error %v", got.Faults, got.State.Volumes, err)
		}
	})
}

func TestThePodOfAListGetsNoTokenByItsTemplate(t *testing.T) {
	inLab(t, map[string]string{"pod-template": token}, func(l *lab) {
		l.started = func(job *batchv1.Job) { l.t.Errorf("the Job %s was created", job.Name) }
		l.mustFail("serviceAccountToken in the volume token", "Remedy")
	}, ours())
}

// An administrator takes the label away while a Job waits for its node.
func TestAJobOfAnAuditDoesNotStartOnceItsServiceAccountIsRefused(t *testing.T) {
	inLab(t, nil, func(l *lab) {
		l.started = func(job *batchv1.Job) {
			refused := account("gold")
			refused.Labels[contract.LabelProvisioner] = "false"
			if err := l.client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("serviceaccounts"), refused, refused.Namespace); err != nil {
				l.t.Error(err)
			}
			l.pod(job, func(*corev1.Pod) {})
		}
		l.ungated = func(*corev1.Pod) { l.t.Error("it was started") }
		begin := time.Now()
		l.mustFail(contract.LabelProvisioner + "=true")
		if took := time.Since(begin); took > 20*time.Second {
			l.t.Errorf("it took %s", took)
		}
	}, ours())
}

func TestAServiceAccountThatCannotBeReadKeepsNoOtherClassFromBeingListed(t *testing.T) {
	silver := configOf("silver", map[string]string{"image": "i", "service-account-name": "silver", "verbs": "provision,delete,list"})
	inLab(t, nil, func(l *lab) {
		l.client.PrependReactor("get", "serviceaccounts", func(action clienttesting.Action) (bool, runtime.Object, error) {
			return action.(clienttesting.GetAction).GetName() == "silver", nil, errors.New("forbidden")
		})
		l.ends(0, contract.EncodeListEnd(0), "")
		got, err := l.Look(l.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Faults) != 1 || !strings.Contains(got.Faults[0].Error(), "get the ServiceAccount flex-provisioner/silver: forbidden") || len(got.State.Volumes) != 1 {
			l.t.Errorf("faults %v, listed %v, error %v", got.Faults, got.State.Volumes, err)
		}
	}, class("silver"), silver, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: "other"}})
}

func TestAnAuditFindsTheConfigThatAClassNames(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"image": "i", "service-account-name": "gold", "verbs": "provision,delete,list"}
	for name, test := range map[string]struct {
		config, classes, want string
	}{
		"it lists the class":          {"shared", "gold silver", ""},
		"it lists every class":        {"shared", "*", ""},
		"it does not list the class":  {"shared", "gold", "add the class to data.classes"},
		"it has another name":         {"other", "*", "no provisioner config of that name"},
		"only another is its label's": {"silver", "*", "no provisioner config of that name"},
	} {
		t.Run(name, func(t *testing.T) {
			silver, cm := class("silver"), configOf("silver", maps.Clone(keys))
			silver.Parameters = map[string]string{contract.ParamConfig: "shared"}
			cm.Name, cm.Data["classes"] = test.config, test.classes
			inLab(t, nil, func(l *lab) {
				got, err := l.Classes(l.t.Context(), "silver")
				switch {
				case err != nil || len(got) != 1:
					l.t.Fatalf("got %+v, %v", got, err)
				case test.want == "" && (got[0].Fault != nil || got[0].Config.Source.Name != test.config):
					l.t.Errorf("got the config %s, %v", got[0].Config.Source.Name, got[0].Fault)
				case test.want != "" && (got[0].Fault == nil || !strings.Contains(got[0].Fault.Error(), test.want)):
					l.t.Errorf("got %v, want %s", got[0].Fault, test.want)
				}
			}, silver, cm)
		})
	}
}
