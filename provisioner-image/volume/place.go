package volume

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode"
)

// KeyPlace is the annotation of a PV that says where its volume was made. It is a Place in JSON.
const KeyPlace = "flex-provisioner.io/cinder-place"

// Place is which storage answers: its URL, and the part of it that the login can see. Elsewhere no
// volume of it is found, although it exists.
type Place struct {
	Endpoint string `json:"endpoint"`
	Region   string `json:"region,omitempty"`
	Project  string `json:"project,omitempty"`
}

// String returns the place as it is noted on a PV.
func (p Place) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		return p.Endpoint // a struct of strings can always be encoded
	}
	return string(text)
}

// Place returns which storage answers.
func (k *Keeper) Place() Place { return k.backend.Place() }

// get returns a volume. Where it is not found, the error says so if it was made in another place.
func (k *Keeper) get(ctx context.Context, id, doing string, noted Place) (Volume, error) {
	v, err := k.backend.Get(ctx, id)
	if Is(err, Gone) {
		err = cmp.Or(k.elsewhere(id, doing, noted), err)
	}
	return v, err
}

// elsewhere returns an error if a volume that was not found was made in another place than the one
// that was asked. The addresses are for the administrator only. A thief of a token may have written the
// annotation, to have the login sent to an address of theirs.
func (k *Keeper) elsewhere(id, doing string, noted Place) error {
	now := k.backend.Place()
	if noted == (Place{}) || noted == now {
		return nil
	}
	return &Error{
		Kind:  Misconfigured,
		Doing: doing + " " + id,
		Said:  "the volume was created in another storage, region or project than the login names now",
		Err: fmt.Errorf("the PV's annotation %s is %s, and the login leads to %s. The annotation may be forged. Remedy: compare it with your own records; if it is right, correct"+
			" the login's Secret, which starts no attempt by itself: kubectl flex retry pv/PV; if it is wrong, or if only the address of the storage has changed, set it to the latter", KeyPlace, noted.shown(), now),
	}
}

// shown returns the place if it has the form of one, which other text has not.
func (p Place) shown() string {
	at, err := url.Parse(p.Endpoint)
	if err != nil || at.Host == "" || (at.Scheme != "http" && at.Scheme != "https") || strings.ContainsFunc(p.String(), unicode.IsSpace) {
		return "not a place"
	}
	return p.String()
}
