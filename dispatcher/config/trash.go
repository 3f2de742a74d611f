package config

import (
	"errors"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

var errKeepDeleted = errors.New("must be a duration such as 168h, or 0")

// KeepDeleted returns how long a released volume waits before it is deleted, as the data of a
// ConfigMap or of a revision say. Zero is the default.
func KeepDeleted(data map[string]string) (time.Duration, *field.Error) {
	text, has := data[keyKeepDeleted]
	if !has {
		return 0, nearKeepDeleted(data)
	}
	keep, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || keep < 0 {
		return 0, field.Invalid(at(keyKeepDeleted), text, errKeepDeleted.Error())
	}
	return keep, nil
}

// nearKeepDeleted returns the fault that a key seems to be a misspelt one: to ignore it would delete
// what was to be kept.
func nearKeepDeleted(data map[string]string) *field.Error {
	for key := range data {
		if nearKey(key) == keyKeepDeleted {
			return field.Invalid(at(key), data[key], "did you mean "+keyKeepDeleted+"?")
		}
	}
	return nil
}

func (p *parser) keepDeleted() {
	if _, fault := KeepDeleted(p.src.Data); fault != nil {
		p.faults = append(p.faults, fault)
	}
}

// withoutTrash returns the data of a source without what says how long deleted volumes are kept.
func withoutTrash(data map[string]string) map[string]string {
	if _, has := data[keyKeepDeleted]; !has {
		return data
	}
	data = maps.Clone(data)
	delete(data, keyKeepDeleted)
	return data
}
