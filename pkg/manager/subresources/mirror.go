package subresources

import (
	"net/http"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mirror answers with the mirror, as it is in the worker.
func (h *handler) mirror(w *answer, r *http.Request, c *call) error {
	if err := only(c.query); err != nil {
		return err
	}
	at, err := h.find.find(r.Context(), c.key)
	if err != nil {
		return err
	}
	at.job.TypeMeta = metav1.TypeMeta{Kind: "Job", APIVersion: batchv1.SchemeGroupVersion.String()}
	at.job.ManagedFields = nil
	w.Header().Set(WorkerHeader, at.worker)
	writeJSON(w, http.StatusOK, at.job)
	return nil
}
