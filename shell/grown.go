package shell

import (
	"encoding/json"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var grownVerb = verb{
	name: "grown", arguments: "CAPACITY", made: true,
	does: "write the result of an expand: the present capacity of the volume, if it is larger than FLEX_SIZE",
	run:  grown,
}

func grown(in *container, arguments []string) error {
	if len(arguments) != 1 || arguments[0] == "" || arguments[0][0] < '0' || arguments[0][0] > '9' {
		return misused("a capacity is required, such as 2Gi or a number of bytes: flex grown CAPACITY")
	}
	uid, err := in.required(contract.PropClaimUID)
	if err != nil {
		return err
	}
	result := contract.NewResult(uid, contract.ExitDone)
	text, err := json.Marshal(arguments[0])
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &result.Capacity); err != nil {
		return misused("%w", err)
	}
	line, err := result.Encode()
	if err != nil {
		return err
	}
	return in.addMessage(line)
}
