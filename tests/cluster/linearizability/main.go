// Command linearizability asks porcupine whether a history is one that a lock with fences can have.
//
// It reads one operation a line, as JSON, from its standard input. It exits with 0 if the operations can be put into
// an order that respects real time and the model, with 1 if they cannot, with 3 if that was not decided in time.
// The model is all that this program adds; it never repairs a history.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/anishathalye/porcupine"
)

// Patience is how long porcupine may search.
const patience = 120 * time.Second

// Operation is one line.
type operation struct {
	Client int `json:"client"`
	// "acquire", "check" and "write" with a fence; "end": the client no longer believes in the hold.
	Op    string `json:"op"`
	Fence uint64 `json:"fence"`
	// Of a write: whether the resource has accepted it; missing if the client was killed first.
	Accepted *bool `json:"accepted"`
	Begin    int64 `json:"begin"`
	End      int64 `json:"end"`
}

// State is the lock's and the resource's.
type state struct {
	holder, granted, written uint64
}

// Step tells whether an operation may happen in a state, and which state it leaves.
func step(before, input, _ interface{}) (bool, interface{}) {
	now, call := before.(state), input.(operation)
	switch call.Op {
	case "acquire":
		isFree := now.holder == 0 && call.Fence > now.granted
		return isFree, state{call.Fence, call.Fence, now.written}
	case "check":
		return now.holder == call.Fence, now
	case "end":
		return now.holder == call.Fence, state{0, now.granted, now.written}
	case "write":
		isAllowed := call.Fence >= now.written
		if call.Accepted != nil && *call.Accepted != isAllowed {
			return false, now
		}
		if isAllowed {
			now.written = call.Fence
		}
		return true, now
	}
	return false, now
}

func read(lines io.Reader) ([]porcupine.Operation, error) {
	var history []porcupine.Operation
	for decoder := json.NewDecoder(lines); ; {
		var call operation
		if err := decoder.Decode(&call); err == io.EOF {
			return history, nil
		} else if err != nil {
			return nil, err
		}
		history = append(history, porcupine.Operation{
			ClientId: call.Client, Input: call, Call: call.Begin, Return: call.End,
		})
	}
}

func main() {
	history, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "error: the history cannot be read:", err)
		os.Exit(2)
	}
	model := porcupine.Model{Init: func() interface{} { return state{} }, Step: step}
	verdict := porcupine.CheckOperationsTimeout(model, history, patience)
	fmt.Printf("%d operations: %s\n", len(history), verdict)
	switch verdict {
	case porcupine.Ok:
	case porcupine.Illegal:
		os.Exit(1)
	default:
		os.Exit(3)
	}
}
