package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// auditPolicy logs each request once, when it is over; a watch, when it begins.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitManagedFields: true
rules:
- level: Metadata
  verbs: [watch]
  omitStages: [RequestReceived, ResponseComplete]
- level: Metadata
  omitStages: [RequestReceived, ResponseStarted]
`

// Request is one request to an API server, from its audit log.
type Request struct {
	Verb      string `json:"verb"`
	UserAgent string `json:"userAgent"`
	URI       string `json:"requestURI"`
	User      struct {
		Username string `json:"username"`
	} `json:"user"`
	// Impersonated is the user that it was made as, if that's another one.
	Impersonated struct {
		Username string `json:"username"`
	} `json:"impersonatedUser"`
	Object struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received metav1.MicroTime `json:"requestReceivedTimestamp"`
	Finished metav1.MicroTime `json:"stageTimestamp"`
}

// Duration is the time the API server took.
func (r Request) Duration() time.Duration { return r.Finished.Sub(r.Received.Time) }

// Requests reads all requests so far from the audit log of a cluster that was started with
// Options.Audit.
func (c *Cluster) Requests() ([]Request, error) {
	if !c.options.Audit {
		return nil, errors.New("cluster " + c.Name() + " was started without Audit")
	}
	f, err := os.Open(c.auditLog)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseRequests(f)
}

// eventStart begins each line. No string inside one holds it: JSON escapes the quotes.
var eventStart = []byte(`{"kind":"Event"`)

// parseRequests reads lines of JSON. A last line without an end is still being written, and left
// out; so is what an API server that was killed left of a line: the next server writes behind it.
func parseRequests(log io.Reader) ([]Request, error) {
	var requests []Request
	for lines := bufio.NewReaderSize(log, 1<<16); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		var r Request
		if err := json.Unmarshal(line[max(0, bytes.LastIndex(line, eventStart)):], &r); err != nil {
			return nil, err
		}
		requests = append(requests, r)
	}
}

// CountBy counts requests by a key of the caller's choice; requests with the key "" are left out.
func CountBy(requests []Request, key func(Request) string) map[string]int {
	counts := map[string]int{}
	for _, r := range requests {
		if k := key(r); k != "" {
			counts[k]++
		}
	}
	return counts
}
