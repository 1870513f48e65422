package subresources

import (
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
)

// pods answers with the mirror's Pods, as they are in the worker.
func (h *handler) pods(w *answer, r *http.Request, c *call) error {
	if err := only(c.query); err != nil {
		return err
	}
	at, err := h.find.find(r.Context(), c.key)
	if err != nil {
		return err
	}
	list := podList{to: w, worker: at.worker}
	if err := at.eachPage(r.Context(), wanted{}, list.add); err != nil {
		return err
	}
	return list.end()
}

// podList writes a core/v1 PodList piece by piece.
type podList struct {
	to     *answer
	worker string
	items  int
}

func (l *podList) add(page *corev1.PodList) error {
	if err := l.begin(page.ResourceVersion); err != nil {
		return err
	}
	for i := range page.Items {
		content, err := json.Marshal(&page.Items[i])
		if err != nil {
			return err
		}
		if l.items++; l.items > 1 {
			content = append([]byte{','}, content...)
		}
		if _, err := l.to.Write(content); err != nil {
			return err
		}
	}
	return nil
}

// begin writes what comes before the items, once.
func (l *podList) begin(version string) error {
	if l.to.code != 0 {
		return nil
	}
	metadata, err := json.Marshal(map[string]string{"resourceVersion": version})
	if err != nil {
		return err
	}
	setHeaders(l.to, "application/json")
	l.to.Header().Set(WorkerHeader, l.worker)
	_, err = fmt.Fprintf(l.to, `{"kind":"PodList","apiVersion":"v1","metadata":%s,"items":[`, metadata)
	return err
}

func (l *podList) end() error {
	_, err := l.to.Write([]byte("]}\n"))
	return err
}
