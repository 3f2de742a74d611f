package volume_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func TestErrorIsOneLineForTheAdministrator(t *testing.T) {
	below := errors.New("connection lost")
	for want, err := range map[string]*volume.Error{
		"make it":                              {Doing: "make it"},
		"make it: no":                          {Doing: "make it", Said: "no"},
		"make it: no (request 7)":              {Doing: "make it", Said: "no", RequestID: "7"},
		"make it: connection lost":             {Doing: "make it", Err: below},
		"make it: no: connection lost":         {Doing: "make it", Said: "no", Err: below},
		"make it: connection lost (request 7)": {Doing: "make it", RequestID: "7", Err: below},
	} {
		if err.Error() != want || err.Err != nil && !errors.Is(err, below) {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestOnlyGoneIsIgnored(t *testing.T) {
	gone := fmt.Errorf("again: %w", &volume.Error{Kind: volume.Gone})
	if err := volume.IgnoreGone(gone); err != nil {
		t.Error(err)
	}
	for _, err := range []error{&volume.Error{Kind: volume.Busy}, errors.New("gone"), nil} {
		if got := volume.IgnoreGone(err); !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestConnectionShowsItsKindOnly(t *testing.T) {
	c := volume.NewConnection("kind", []byte(`{"password":"hush"}`))
	text, err := c.MarshalText()
	for _, got := range []string{c.String(), c.GoString(), fmt.Sprintf("%+v", c), string(text)} {
		if err != nil || got != "kind connection [redacted]" {
			t.Errorf("printed as %q, %v", got, err)
		}
	}
	var details struct{ Password string }
	if err := c.Decode(&details); err != nil || details.Password != "hush" || c.IsEmpty() || !(volume.Connection{}).IsEmpty() {
		t.Errorf("%+v, %v", details, err)
	}
}
