package try

import (
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// steppedClock is a clock whose time passes when the world lets it. FakeClock calls functions while it
// is locked, and those of the dispatcher look at it.
type steppedClock struct{ *clocktesting.FakeClock }

func newClock() steppedClock { return steppedClock{clocktesting.NewFakeClock(time.Now())} }

// AfterFunc calls a function in a goroutine of its own, as time.AfterFunc does.
func (c steppedClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	return c.FakeClock.AfterFunc(d, func() { go f() })
}
