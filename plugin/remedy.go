package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

// remedyFor returns what to do about the failed run of a report whose note names no remedy. No remedy
// of an expand or a delete touches the claim, which has data.
func remedyFor(r *Report, run decide.Run) string {
	output := fmt.Sprintf("kubectl --namespace=%s describe job %s", run.JobNamespace(), run.Name)
	cm := cmp.Or(shownName(config.NameOfRevision(run.Revision)), "of the class")
	if run.Verb == contract.Provision {
		cm = cmp.Or(r.Config, cm)
	}
	verdict := run.Outcome.Verdict
	if remedy, own := remediesOfVerbs[run.Verb][verdict]; own {
		return remedy
	}
	switch verdict {
	case contract.BadConfig:
		return fmt.Sprintf("correct what the output names. If it is the ConfigMap %s: %s."+
			" Anything else, such as a Secret, starts no attempt by itself: kubectl flex retry %s", cm, usedFor(run.Verb), r.argument())
	case contract.NoCredentials:
		return fmt.Sprintf("correct the Secret that the ConfigMap %s names. A changed Secret starts no attempt by itself: kubectl flex retry %s", cm, r.argument())
	case contract.BadRequest, contract.NoCapacity, contract.TryAgain, contract.Done:
		return advice(run) + ". The container's output: " + output
	default:
		return ""
	}
}

// Exit codes of a shell: its script, or a call of a program, is wrong, a program is not executable, or
// it does not exist.
const (
	exitUsage         = 2
	exitNotExecutable = 126
	exitNotFound      = 127
)

// advice says what to check after a run that failed for a reason of the provisioner's own. The storage is
// well where the script calls what does not exist, or writes a PersistentVolume that is refused.
func advice(run decide.Run) string {
	if code := run.Outcome.ExitCode; code != nil {
		switch *code {
		case exitUsage:
			return "correct the script or the image: it has an error, or calls a program in a way that this does not know"
		case exitNotExecutable:
			return "correct the script or the image: it names a program that cannot be executed"
		case exitNotFound:
			return "correct the script or the image: it names a program that does not exist"
		}
	}
	if run.Verb == contract.Provision && run.Outcome.Verdict == contract.TryAgain {
		return "check the storage, and whether the script writes a PersistentVolume that is refused"
	}
	return "check the storage"
}

// remediesOfVerbs are the remedies of verdicts that say something else of one verb.
var remediesOfVerbs = map[contract.Verb]map[contract.Verdict]string{
	contract.Provision: {
		contract.BadRequest: "delete the claim, and create it with a request that the storage can serve",
		contract.NoCapacity: "free space in the storage or on the node, or have the quota raised. Or delete the claim, and create it with a smaller request",
	},
	contract.Expand: {
		contract.BadRequest: "request a size in the claim that the storage can serve. It must be larger than the present one",
		contract.NoCapacity: "free space in the storage or on the node, or have the quota raised. Or request less in the claim, and more than it has now",
	},
}

// addBinding makes the binding the remedy of a provision whose container may not write its
// PersistentVolume. That is asked of the API server: a storage could say that it was refused.
func (d *Dispatcher) addBinding(ctx context.Context, r *Report, o *observe.Observation) {
	cfg := o.Provision.Config
	account := cfg.Source.Namespace + ":" + cfg.ServiceAccount
	ofClaim := slices.Contains([]string{"", string(contract.BadRequest), string(contract.NoCapacity)}, r.failed) // or of no run
	if ofClaim || o.View.Claim != decide.ClaimPending || cfg.ServiceAccount == "" || cfg.Writer != config.ContainerWrites || d.mayWritePVs(ctx, account) {
		return
	}
	r.Remedy = "kubectl create clusterrolebinding NAME --clusterrole=flex-provisioner-volumes --serviceaccount=" + account
}

// mayWritePVs reports whether a ServiceAccount, "namespace:name", may create PersistentVolumes, also
// where the user may not ask that. It asks once.
func (d *Dispatcher) mayWritePVs(ctx context.Context, account string) bool {
	may, known := d.writers[account]
	if known {
		return may
	}
	namespace, name, _ := strings.Cut(account, ":")
	may, err := admin.MayCreatePVs(ctx, d.Client, namespace, name)
	if d.writers == nil {
		d.writers = map[string]bool{}
	}
	d.writers[account] = may || err != nil
	return d.writers[account]
}

// usedFor says for what a corrected ConfigMap is used.
func usedFor(verb contract.Verb) string {
	if verb == contract.Provision {
		return "the next attempt follows at once"
	}
	return "it is used for this volume if it certainly reaches the same storage, and kubectl flex history lists the config revisions"
}

// argument returns what names the claim in a command, or the PersistentVolume that was made for it if
// the claim no longer exists.
func (r *Report) argument() string {
	if r.Size == "" {
		return r.example()
	}
	namespace, name, _ := strings.Cut(r.Claim, "/")
	return name + " --namespace=" + namespace
}

// adopt takes over how a volume is doing that was made for another claim.
func (r *Report) adopt(of *Report) {
	r.Runs, r.Warnings = of.Runs, append(r.Warnings, of.Warnings...)
	r.State, r.Reason, r.Cause, r.Remedy, r.Next, r.NextAt, r.failed = of.State, of.Reason, of.Cause, of.Remedy, of.Next, of.NextAt, of.failed
	r.Volume, r.Revision, r.ClaimState, r.made = of.Volume, of.Revision, of.ClaimState, of.UID
}

// example names the claim, "namespace/name", or the PersistentVolume that was made for it if the claim no
// longer exists.
func (r *Report) example() string {
	if r.Size == "" {
		return "pv/" + contract.PVName(r.UID)
	}
	return r.Claim
}
