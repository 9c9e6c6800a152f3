// Reads histories, one JSON object a line (tests/checkers/goldens.py has the form), asks Porcupine, and writes for each
// a line {"verdict": "valid" | "invalid" | "unknown", "seconds": s, "cpu_seconds": c}. The first argument is the limit
// in seconds.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

const initial = -1

type history struct {
	Model string
	Ops   [][4]any
}

type call struct {
	f       string
	a, b    int64
	key     string
	text    string
	known   bool // the value
	empty   bool
	certain bool // it returned
	mops    []micro
}

// Of a transaction over a few registers.
type micro struct {
	writes bool
	key    int
	value  int64
	known  bool
}

// An operation that never returned may be placed at the very end; where it cannot happen there, it did not happen.
func register(state, input, output any) (bool, any) {
	value, c := state.(int64), input.(call)
	switch c.f {
	case "write":
		return true, c.a
	case "read":
		return !c.known || value == c.a, value
	case "failed-cas": // it saw another value
		return value != c.a, value
	default: // cas
		if value == c.a {
			return true, c.b
		}
		return !c.certain, value
	}
}

// Porcupine's own model of a map of texts, one key at a time.
func text(state, input, output any) (bool, any) {
	held, c := state.(string), input.(call)
	switch c.f {
	case "get":
		return !c.known || held == c.text, held
	case "put":
		return true, c.text
	default: // append
		return true, held + c.text
	}
}

func textHash(state any) uint64 {
	h := fnv.New64a()
	h.Write([]byte(state.(string)))
	return h.Sum64()
}

func byKey(ops []porcupine.Operation) [][]porcupine.Operation {
	found := map[string][]porcupine.Operation{}
	for _, op := range ops {
		key := op.Input.(call).key
		found[key] = append(found[key], op)
	}
	parts := [][]porcupine.Operation{}
	for _, part := range found {
		parts = append(parts, part)
	}
	return parts
}

func mutex(state, input, output any) (bool, any) {
	held, c := state.(bool), input.(call)
	if held == (c.f == "acquire") {
		return !c.certain, held
	}
	return true, !held
}

func registers(state, input, output any) (bool, any) {
	held := state.([3]int64)
	for _, m := range input.(call).mops {
		if m.writes {
			held[m.key] = m.value
		} else if m.known && held[m.key] != m.value {
			return false, state
		}
	}
	return true, held
}

func queue(state, input, output any) (bool, any) {
	held, c := state.(string), input.(call)
	if c.f == "enqueue" {
		return true, held + string(rune(c.a))
	}
	if held == "" {
		return !c.known || c.empty, held
	}
	runes := []rune(held)
	if c.empty || (c.known && runes[0] != rune(c.a)) {
		return false, held
	}
	return true, string(runes[1:])
}

func model(name string) (porcupine.Model, bool) {
	switch name {
	case "register", "cas-register", "strict-cas-register":
		return porcupine.Model{Init: func() any { return int64(initial) }, Step: register}, true
	case "kv":
		return porcupine.Model{Partition: byKey, Init: func() any { return "" }, Step: text, Hash: textHash}, true
	case "multi-register":
		return porcupine.Model{Init: func() any { return [3]int64{initial, initial, initial} }, Step: registers}, true
	case "mutex":
		return porcupine.Model{Init: func() any { return false }, Step: mutex}, true
	case "fifo-queue":
		return porcupine.Model{Init: func() any { return "" }, Step: queue}, true
	}
	return porcupine.Model{}, false
}

func micros(values []any) []micro {
	found := make([]micro, len(values))
	for n, value := range values {
		mop := value.([]any)
		seen, known := mop[2].(float64)
		found[n] = micro{mop[0] == "w", int(mop[1].(float64)), int64(seen), known}
	}
	return found
}

func operations(h history) []porcupine.Operation {
	ops := make([]porcupine.Operation, len(h.Ops))
	for n, op := range h.Ops {
		c := call{f: op[0].(string), known: op[1] != nil, certain: op[3] != nil}
		switch value := op[1].(type) {
		case float64:
			c.a = int64(value)
		case string:
			c.empty = true
		case []any:
			switch first := value[0].(type) {
			case string:
				c.key = first
				c.text, c.known = value[1].(string)
			case []any:
				c.mops = micros(value)
			default:
				c.a, c.b = int64(first.(float64)), int64(value[1].(float64))
			}
		}
		ret := int64(math.MaxInt64)
		if c.certain {
			ret = int64(op[3].(float64))
		}
		ops[n] = porcupine.Operation{ClientId: n, Input: c, Call: int64(op[2].(float64)), Return: ret}
	}
	return ops
}

func cpuSeconds() float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds()
}

func main() {
	limit, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, "the first argument is the limit in seconds:", err)
		os.Exit(2)
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<30)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var h history
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil {
			fmt.Fprintln(os.Stderr, "not a history:", err)
			os.Exit(2)
		}
		verdict, seconds, cpu := "none", 0.0, 0.0
		if m, known := model(h.Model); known {
			ops := operations(h)
			began, used := time.Now(), cpuSeconds()
			result := porcupine.CheckOperationsTimeout(m, ops, time.Duration(limit*float64(time.Second)))
			seconds, cpu = time.Since(began).Seconds(), cpuSeconds()-used
			verdict = map[porcupine.CheckResult]string{"Ok": "valid", "Illegal": "invalid", "Unknown": "unknown"}[result]
		}
		if err := out.Encode(map[string]any{"verdict": verdict, "seconds": seconds, "cpu_seconds": cpu}); err != nil {
			os.Exit(1)
		}
	}
}
