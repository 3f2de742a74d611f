package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var pvVerb = verb{
	name: "pv", arguments: "[--local PATH] [PATCH]", made: true,
	does: "write the PersistentVolume: that of pv.json, changed by PATCH (a JSON merge patch). --local adds a path of the node as its volume source",
	run:  pv,
}

// pv writes the PersistentVolume or, where the pod has no token, describes it.
func pv(in *container, arguments []string) error {
	path, patch, err := pvArguments(arguments)
	if err != nil {
		return err
	}
	if err := checkTexts(path, patch); err != nil {
		return err
	}
	skeleton, err := in.skeleton()
	if err != nil {
		return err
	}
	full := skeleton
	if path != "" {
		host, err := in.required(contract.PropSelectedHost)
		if err != nil {
			return fmt.Errorf("--local needs the node of the volume, but %w. Remedy: use a class with volumeBindingMode WaitForFirstConsumer", err)
		}
		full = merged(full, local(path, host))
	}
	full = merged(full, patch)
	api, err := in.server()
	if errors.Is(err, fs.ErrNotExist) { // write-pv: dispatcher
		return in.describe(skeleton, full)
	}
	if err != nil {
		return err
	}
	says, err := api.create(full, text(skeleton, "metadata", "annotations", contract.AnnClaimUID))
	if err == nil {
		fmt.Fprintln(in.out, says)
	}
	return err
}

func pvArguments(arguments []string) (path string, patch object, err error) {
	if len(arguments) > 0 && arguments[0] == "--local" {
		if len(arguments) == 1 || arguments[1] == "" {
			return "", nil, misused("a path is required: flex pv --local PATH")
		}
		path, arguments = arguments[1], arguments[2:]
	}
	switch {
	case len(arguments) > 1:
		return "", nil, misused("there are %d arguments, and PATCH is one. Remedy: put it in single quotes", len(arguments))
	case len(arguments) == 1:
		if patch, err = decode([]byte(arguments[0])); err != nil {
			return "", nil, misused("PATCH must be a JSON object: %w", err)
		}
	case path == "":
		return "", nil, misused(`a patch is required: flex pv '{"spec":{"nfs":{"server":"filer","path":"/export"}}}'`)
	}
	return path, patch, nil
}

// checkTexts returns an error if a text that a script adds to the PV has control characters, or is a
// path that leads to a directory above. Scripts add what their storage says, and a hostile one says
// anything. The texts stand in the arguments and in the paths of programs that run as root on the
// nodes, and on the terminals of all who read the PV. Kubernetes allows both in the path of an NFS
// export (validateNFSVolumeSource in pkg/apis/core/validation).
func checkTexts(values ...any) error {
	for _, value := range values {
		for one := range texts(value) {
			if strings.ContainsFunc(one, unicode.IsControl) || slices.Contains(strings.Split(one, "/"), "..") {
				return fmt.Errorf("the text %s has control characters, or leads to a directory above. Remedy: let the storage name the volume without them; "+
					"if it does, correct the script", strconv.QuoteToASCII(cut(one)))
			}
		}
	}
	return nil
}

// texts yields every text in a JSON value, names included.
func texts(value any) iter.Seq[string] {
	return func(yield func(string) bool) { yieldTexts(value, yield) }
}

// yieldTexts reports whether to continue.
func yieldTexts(value any, yield func(string) bool) bool {
	switch value := value.(type) {
	case string:
		return yield(value)
	case []any:
		for _, one := range value {
			if !yieldTexts(one, yield) {
				return false
			}
		}
	case object:
		for name, one := range value {
			if !yield(name) || !yieldTexts(one, yield) {
				return false
			}
		}
	}
	return true
}

// skeleton returns the PV of the claim that this run, or this command of flex each, is for.
func (in *container) skeleton() (object, error) {
	content, from := []byte(in.property(contract.PropPV)), contract.EnvName(contract.PropPV)
	if len(content) == 0 {
		var err error
		if content, err = os.ReadFile(in.pv); err != nil {
			return nil, err
		}
		from = in.pv
	}
	all, err := decode(content)
	if err != nil {
		return nil, fmt.Errorf("read the PersistentVolume in %s: %w", from, err)
	}
	if text(all, "kind") != "List" {
		return all, nil
	}
	name, err := in.required(contract.PropPVName)
	if err != nil {
		return nil, fmt.Errorf("%s contains many PersistentVolumes, and %w. Remedy: begin the script with flex each", from, err)
	}
	items, _ := all["items"].([]any)
	for _, item := range items {
		if one, ok := item.(object); ok && text(one, "metadata", "name") == name {
			return one, nil
		}
	}
	return nil, fmt.Errorf("%s does not contain the PersistentVolume %s", from, name)
}

// local returns a patch for a volume at a path of one node.
func local(path, host string) object {
	return object{"spec": object{
		"local": object{"path": path},
		"nodeAffinity": object{"required": object{"nodeSelectorTerms": []any{object{"matchExpressions": []any{
			object{"key": contract.TopologyHostname, "operator": "In", "values": []any{host}},
		}}}}},
	}}
}

// merged returns an object changed by a JSON merge patch (RFC 7386). It changes neither of them.
func merged(target, patch object) object {
	out := maps.Clone(target)
	if out == nil {
		out = object{}
	}
	for key, value := range patch {
		switch value := value.(type) {
		case nil:
			delete(out, key)
		case object:
			below, _ := out[key].(object)
			out[key] = merged(below, value)
		default:
			out[key] = value
		}
	}
	return out
}

// describe writes into the termination message what the PV has beside its skeleton. The dispatcher
// writes the PV.
func (in *container) describe(skeleton, full object) error {
	source, before, spec := object{}, specOf(skeleton), maps.Clone(specOf(full))
	description := object{"source": source}
	for key, value := range specOf(full) {
		switch old, found := before[key]; {
		case key == "capacity":
			if size := at(value, "storage"); !reflect.DeepEqual(size, at(old, "storage")) {
				description["capacity"] = size
			}
			spec[key] = old
		case found:
		case key == "nodeAffinity":
			description[key] = value
			delete(spec, key)
		default:
			source[key] = value
			delete(spec, key)
		}
	}
	rest := maps.Clone(full)
	rest["spec"] = spec
	if !reflect.DeepEqual(rest, skeleton) {
		return errors.New("the patch changes more than the volume source, nodeAffinity and capacity. The pod has no token, since the config has write-pv: dispatcher, " +
			"and a description has nothing else. Remedy: change only these, or let the container write the PersistentVolume")
	}
	text, err := json.Marshal(description)
	if err != nil {
		return err
	}
	return in.setMessage(string(text) + "\n")
}

func specOf(pv object) object {
	spec, _ := pv["spec"].(object)
	return spec
}
