package config

import (
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// Trash is what a config says of the released volumes that wait for their delete.
type Trash struct {
	// Keep is how long each waits. Zero is the default.
	Keep time.Duration
	// Limit is how many bytes of one namespace wait. Zero is the default, and stands for no limit.
	Limit int64
}

// LeastCounted is what each volume counts at least towards a limit, in bytes. A quota counts no
// claim that was deleted, so a tenant could have any number of small volumes kept, each with
// objects of its own. It is the least limit as well: a number that lacks its unit, or is to say
// that there is none, would delete everything.
const LeastCounted = 1 << 30

var (
	errKeepDeleted = errors.New("must be a duration such as 168h, or 0")
	errKeepLimit   = errors.New("must be a quantity of bytes such as 500Gi, at least 1Gi. " +
		"Without the key there is no limit")
)

// TrashOf returns what the data of a ConfigMap or of a revision say of the trash.
func TrashOf(data map[string]string) (t Trash, fault *field.Error) {
	if fault = nearTrash(data); fault != nil {
		return Trash{}, fault
	}
	if text, ok := data[keyKeepDeleted]; ok {
		keep, err := time.ParseDuration(strings.TrimSpace(text))
		if err != nil || keep < 0 {
			return Trash{}, field.Invalid(at(keyKeepDeleted), text, errKeepDeleted.Error())
		}
		t.Keep = keep
	}
	if text, ok := data[keyKeepLimit]; ok {
		limit, err := quantity.Parse(strings.TrimSpace(text))
		if err != nil || limit.Value() < LeastCounted {
			return Trash{}, field.Invalid(at(keyKeepLimit), text, errKeepLimit.Error())
		}
		t.Limit = limit.Value()
	}
	return t, nil
}

// nearTrash returns the fault that a key seems to be a misspelt one: to ignore it would delete what
// was to be kept.
func nearTrash(data map[string]string) *field.Error {
	for key := range data {
		if foldedKeys()[key] != "" {
			continue // it is what it seems to be
		}
		if own := nearKey(key); own == keyKeepDeleted || own == keyKeepLimit {
			return field.Invalid(at(key), data[key], "did you mean "+own+"?")
		}
	}
	return nil
}

// Noted returns what a stored revision says of the trash: what the ConfigMaps of its class said
// last, or else what it was made of.
func Noted(stored *appsv1.ControllerRevision, made Source) (Trash, *field.Error) {
	note, ok := stored.Annotations[AnnTrash]
	if !ok {
		return TrashOf(made.Data)
	}
	var data map[string]string
	if err := json.Unmarshal([]byte(note), &data); err != nil {
		at := field.NewPath("metadata", "annotations").Key(AnnTrash)
		return Trash{}, field.Invalid(at, note, err.Error())
	}
	return TrashOf(data)
}

// Note returns what Noted reads.
func (t Trash) Note() (string, error) {
	data := map[string]string{keyKeepDeleted: t.Keep.String()}
	if t.Limit != 0 {
		data[keyKeepLimit] = strconv.FormatInt(t.Limit, 10)
	}
	note, err := json.Marshal(data)
	return string(note), err
}

// Or returns what keeps as much as either of two configs.
func (t Trash) Or(other Trash) Trash {
	t.Keep = max(t.Keep, other.Keep)
	if t.Limit != 0 {
		t.Limit = max(t.Limit, other.Limit)
	}
	if other.Limit == 0 {
		t.Limit = 0
	}
	return t
}

func (p *parser) trash() {
	if _, fault := TrashOf(p.src.Data); fault != nil {
		p.faults = append(p.faults, fault)
	}
}

// withoutTrash returns the data of a source without what says which deleted volumes are kept.
func withoutTrash(data map[string]string) map[string]string {
	_, keeps := data[keyKeepDeleted]
	_, limits := data[keyKeepLimit]
	if !keeps && !limits {
		return data
	}
	data = maps.Clone(data)
	delete(data, keyKeepDeleted)
	delete(data, keyKeepLimit)
	return data
}
