package latency

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/series"
)

var provision = Kind{Verb: contract.Provision}

// measured is a Tracker and what it has counted.
type measured struct {
	*testing.T
	*Tracker
	registry metrics.KubeRegistry
}

// inTime runs a test in fake time.
func inTime(t *testing.T, test func(m measured)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, registry := series.New(), metrics.NewKubeRegistry()
		s.Register(registry, func() series.Backlog { return series.Backlog{} })
		test(measured{t, New(clock.RealClock{}, s), registry})
	})
}

// mustCount fails the test unless a phase was counted so often, with so many seconds in all.
func (m measured) mustCount(phase string, times uint64, seconds float64) {
	m.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		m.Fatal(err)
	}
	for _, family := range families {
		for _, one := range family.GetMetric() {
			if h := one.GetHistogram(); h != nil && one.GetLabel()[0].GetValue() == phase {
				if h.GetSampleCount() != times || h.GetSampleSum() != seconds {
					m.Errorf("%s is counted %d times, %v s in all, want %d, %v s", phase, h.GetSampleCount(), h.GetSampleSum(), times, seconds)
				}
				return
			}
		}
	}
	m.Errorf("%s is not counted", phase)
}

// mustKeepNothing fails the test if anything is kept that has ended.
func (m measured) mustKeepNothing() {
	m.Helper()
	if len(m.enqueued)+len(m.reconciled)+len(m.steps) > 0 {
		m.Errorf("it keeps %v %v %v", m.enqueued, m.reconciled, m.steps)
	}
}

func TestALaunchIsMeasuredFromTheFirstEventOverEachStepThatFollowsAtOnce(t *testing.T) {
	inTime(t, func(m measured) {
		m.Enqueued("claim")
		time.Sleep(time.Second)
		m.Enqueued("claim")
		m.Begin("claim")
		m.Enqueued("claim") // by the slot that it is assigned
		m.Continue("claim")
		m.End("claim")
		time.Sleep(time.Second)
		m.Begin("claim")
		time.Sleep(time.Second)
		m.Launched("claim", provision)
		m.Continue("claim")
		m.End("claim")
		m.mustCount(series.PhaseLaunch, 1, 3)
		m.mustKeepNothing()
	})
}

func TestWhatALaunchWaitsForIsNotItsOwnShare(t *testing.T) {
	inTime(t, func(m measured) {
		m.Enqueued("claim")
		m.Begin("claim")
		m.End("claim") // no slot is free
		time.Sleep(time.Minute)
		m.Enqueued("claim")
		time.Sleep(time.Second)
		m.Begin("claim")
		m.Launched("claim", provision)
		m.End("claim")
		m.mustCount(series.PhaseLaunch, 1, 1)

		m.Begin("claim") // a pause has ended
		time.Sleep(time.Second)
		m.Launched("claim", provision)
		m.End("claim")
		m.mustCount(series.PhaseLaunch, 2, 2)
		m.mustKeepNothing()
	})
}

func TestEachStepOfAJobIsMeasuredOnceFromWhenItIsFirstShown(t *testing.T) {
	inTime(t, func(m measured) {
		steps := []struct {
			phase string
			shows func()
			ends  func()
		}{
			{series.PhaseConfirm, func() { m.ShowsGate("job") }, func() { m.Confirmed("job", provision) }},
			{series.PhaseRecord, func() { m.ShowsEnd("job") }, func() { m.Recorded("job", provision) }},
			{series.PhaseRelease, func() {}, func() { m.Released("job", provision) }},
		}
		for i, s := range steps {
			s.shows()
			time.Sleep(time.Duration(i+1) * time.Second)
			s.shows()
			s.ends()
			s.ends()
			m.mustCount(s.phase, 1, float64(i+1))
		}
		m.Forget("job")
		m.mustKeepNothing()
	})
}

func TestNothingIsKeptOfJobsThatNoLongerExist(t *testing.T) {
	inTime(t, func(m measured) {
		m.ShowsGate("deleted")
		m.ShowsEnd("deleted")
		m.Recorded("deleted", provision)
		m.Forget("deleted")
		m.mustKeepNothing()

		m.ShowsGate("unseen") // its Job was deleted before
		time.Sleep(keepFor)
		m.ShowsGate("job")
		m.Forget("job")
		m.mustKeepNothing()
	})
}
