// Program quantities says what Kubernetes makes of each text it is given.
//
// It reads one JSON value per line (a string or a number, as it would stand in a manifest) and prints one JSON
// object per line: whether the text is a quantity and, if so, its Value, its MilliValue, its canonical text, and
// the canonical texts of the two integers when written back as bytes and as milli-units.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apimachinery/pkg/api/resource"
)

type answer struct {
	Text      json.RawMessage `json:"text"`
	OK        bool            `json:"ok"`
	Value     int64           `json:"value"`
	Milli     int64           `json:"milliValue"`
	Canonical string          `json:"canonical"`
	AsBytes   string          `json:"valueAsBinary"`
	AsMilli   string          `json:"milliValueAsDecimal"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<22)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	for lines.Scan() {
		reply := answer{Text: json.RawMessage(lines.Text())}
		var quantity resource.Quantity
		if err := json.Unmarshal(lines.Bytes(), &quantity); err == nil {
			reply.OK = true
			reply.Value = quantity.Value()
			reply.Milli = quantity.MilliValue()
			reply.AsBytes = resource.NewQuantity(reply.Value, resource.BinarySI).String()
			reply.AsMilli = resource.NewMilliQuantity(reply.Milli, resource.DecimalSI).String()
			reply.Canonical = quantity.String()
		}
		if err := encoder.Encode(reply); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	if err := lines.Err(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
