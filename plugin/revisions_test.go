package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// upgraded makes a volume under each of two revisions. keys are what the second one has beside
// another image.
func upgraded(c *fakecluster.Cluster, keys ...string) (old string) {
	c.SetUpGold(fakecluster.Works)
	c.Start()
	first := c.CreateClaim("first")
	c.Until("the first is bound", time.Minute, c.IsBound("first"))
	c.Images["localhost/gold:v2"] = fakecluster.Image{Does: fakecluster.Works}
	c.UpdateConfig(append(keys, "image", "localhost/gold:v2")...)
	c.CreateClaim("second")
	c.Until("the second is bound", time.Minute, c.IsBound("second"))
	c.Advance(time.Minute)
	return c.PVOf(first).Name
}

// move moves a volume to the newest revision, and returns why it is not moved.
func move(c *fakecluster.Cluster, pv string, dryRun bool) (why string) {
	asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (string, error) {
		revision, err := d.Move(ctx, pv, "newest", dryRun)
		if err != nil {
			why = err.Error()
		}
		return revision, nil
	})
	return why
}

func TestAVolumeIsMovedToTheRevisionOfANewImage(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		old := upgraded(c)
		history := func() []plugin.Revision {
			return asIs(c, true, func(_ context.Context, d *plugin.Dispatcher) (*plugin.History, error) { return d.History("gold") }).Revisions
		}
		all := history()
		if len(all) != 2 || all[0].Image != "localhost/gold:v2" || all[0].Volumes != 1 || all[1].Volumes != 1 {
			c.T.Fatalf("the history is %+v", all)
		}
		if why := move(c, old, true); why != "" || history()[0].Volumes != 1 {
			c.T.Errorf("a dry run says %q, and leaves %+v", why, history())
		}
		if why := move(c, old, false); why != "" || history()[0].Volumes != 2 {
			c.T.Errorf("it is not moved: %s", why)
		}
		fakecluster.Delete(c, fakecluster.User, c.Claim("first"))
		c.Until("it is deleted", time.Minute, func() bool { return len(c.Storage) == 1 })
		for _, run := range c.Runs {
			if run.Verb == contract.Delete && run.Image != "localhost/gold:v2" {
				c.T.Errorf("it is deleted by %s", run.Image)
			}
		}
	})
}

// The delete would find nothing there, and end with success.
func TestAVolumeIsNotMovedToAnotherStorage(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		old := upgraded(c, "backend", "another")
		if why := move(c, old, false); !strings.Contains(why, "may reach different storages") {
			c.T.Errorf("it says %q", why)
		}
	})
}

// Under another revision the PV would not prove the run that is on record.
func TestAVolumeIsNotMovedBelowAJob(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		old := upgraded(c)
		c.Images["localhost/gold:v1"] = fakecluster.Image{Does: fakecluster.Fails(contract.ExitUnavailable, "")}
		c.Images["localhost/gold:v2"] = c.Images["localhost/gold:v1"]
		c.NoPodFor["first"] = true
		fakecluster.Delete(c, fakecluster.User, c.Claim("first"))
		c.Until("a delete is at work", time.Minute, func() bool { return strings.Contains(move(c, old, true), "is at work") })
	})
}

// Nothing could expand it there.
func TestAVolumeIsNotMovedToARevisionWithoutItsVerbs(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpExpandableGold(fakecluster.Works)
		c.Start()
		claim := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		c.UpdateConfig("verbs", "provision,delete")
		c.CreateClaim("second")
		c.Until("the second is bound", time.Minute, c.IsBound("second"))
		c.Advance(time.Minute)
		if why := move(c, c.PVOf(claim).Name, false); !strings.Contains(why, "lists the verb expand") {
			c.T.Errorf("it says %q", why)
		}
	})
}

func TestAVolumeOfAnotherProvisionerIsNotMoved(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		old := upgraded(c)
		pv := fakecluster.Get[*corev1.PersistentVolume](c, "", old)
		fakecluster.Update(c, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnProvisionedBy] = "example.com/other" })
		if why := move(c, old, false); !strings.Contains(why, "belongs to the provisioner example.com/other") {
			c.T.Errorf("it says %q", why)
		}
	})
}

func TestHistoryShowsScriptsAndWhatAnEditHasChanged(t *testing.T) {
	const first, edited = "#!/bin/bash\n\techo first\nexit\n", "#!/bin/bash\n\techo edited\nexit\n"
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Works, "script", first)
		c.Start()
		c.CreateClaim("first")
		c.Until("the first is bound", time.Minute, c.IsBound("first"))
		c.UpdateConfig("script", edited)
		c.Advance(time.Second)
		c.CreateClaim("second")
		c.Until("the second is bound", time.Minute, c.IsBound("second"))
		c.Advance(time.Minute)
		all := asIs(c, true, func(_ context.Context, d *plugin.Dispatcher) (*plugin.History, error) { return d.History("gold") }).Revisions
		if len(all) != 2 || len(all[0].Script) != 12 || all[0].Script == all[1].Script {
			c.T.Fatalf("the history is %+v", all)
		}
		show := func(do func(d *plugin.Dispatcher) (string, error)) string {
			return asIs(c, true, func(_ context.Context, d *plugin.Dispatcher) (string, error) { return do(d) })
		}
		if got := show(func(d *plugin.Dispatcher) (string, error) { return d.Script("gold", all[1].Name) }); got != first {
			c.T.Errorf("the script of the older revision is %q", got)
		}
		changed := show(func(d *plugin.Dispatcher) (string, error) { return d.Diff("gold", all[1].Name) })
		if !strings.Contains(changed, "-\techo first\n+\techo edited\n exit\n") {
			c.T.Errorf("the edit has changed:\n%s", changed)
		}
		if same := show(func(d *plugin.Dispatcher) (string, error) { return d.Diff("gold", "newest") }); same != "" {
			c.T.Errorf("the newest differs from itself:\n%s", same)
		}
	})
}
