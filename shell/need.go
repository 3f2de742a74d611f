package shell

import "github.com/flex-provisioner/flex-provisioner/contract"

var needVerb = verb{
	name: "need", arguments: "KEY...",
	does: "end with exit code 78 if the config has no value for one of these keys, before anything is created",
	run:  need,
}

// need ends the run if the config or the class lacks a property. bash's own ${VARIABLE:?} ends with
// exit code 1, which is tried again for ever.
func need(in *container, keys []string) error {
	if len(keys) == 0 {
		return misused("a key is required: flex need KEY...")
	}
	for _, key := range keys {
		if in.get(contract.EnvName(key)) == "" {
			return misconfigured.end(in, []string{"the config lacks the key " + key})
		}
	}
	return nil
}
