package subresources

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// list writes a list of core/v1 item by item: JSON of all of them would take much memory.
type list struct {
	to    *responseWriter
	kind  string
	items int
}

// begin writes what comes before the items, once.
func (l *list) begin(of *placed, version string) error {
	if l.to.code != 0 {
		return nil
	}
	if len(of.workers) > 1 {
		version = "" // each worker has another
	}
	metadata, err := json.Marshal(metav1.ListMeta{ResourceVersion: version})
	if err != nil {
		return err
	}
	setHeaders(l.to, "application/json")
	l.to.Header().Set(WorkerHeader, of.names())
	_, err = fmt.Fprintf(l.to, `{"kind":%q,"apiVersion":"v1","metadata":%s,"items":[`, l.kind, metadata)
	return err
}

func (l *list) add(item any) error {
	if l.items++; l.items > 1 {
		if _, err := l.to.Write([]byte{','}); err != nil {
			return err
		}
	}
	return encoderTo(l.to).Encode(item)
}

// end writes the end of the list, with the warnings of which workers it lacks objects.
func (l *list) end(warnings []string) error {
	if len(warnings) == 0 {
		_, err := l.to.Write([]byte("]}\n"))
		return err
	}
	content, err := json.Marshal(warnings)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.to, "],\"warnings\":%s}\n", content)
	return err
}
