package dashboard

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/jobferry/jobferry/pkg/plugin/access"
	"github.com/jobferry/jobferry/pkg/plugin/dashboard/view"
)

// logTail is how many lines of a log are shown of what was written before.
const logTail = 1000

// log sends the log of a container, and follows it. As a file, it's all that there is now.
func (s *Server) log(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	options := &corev1.PodLogOptions{
		Container: query.Get(paramContainer), Previous: query.Has(paramPrevious), Timestamps: query.Has(paramTimestamps),
	}
	asFile := query.Has(paramDownload)
	if !asFile {
		options.Follow, options.TailLines = !options.Previous, ptr.To[int64](logTail)
	}
	stream, err := s.hub.Log(r.Context(), jobOf(r), access.PodChoice{Pod: query.Get(paramPod), Worker: query.Get(paramWorker)}, options)
	if err != nil {
		http.Error(w, err.Error(), statusOf(err))
		return
	}
	defer stream.Close()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if asFile {
		name := query.Get(paramPod) + "-" + options.Container + ".log"
		w.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": name}))
	}
	w.WriteHeader(http.StatusOK)
	buffer := make([]byte, 32<<10)
	for send(w, nil) {
		n, err := stream.Read(buffer)
		if n > 0 && !send(w, buffer[:n]) {
			return
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // it must not look like the log's end
		}
	}
}

// statusOf is the status of the hub's answer, or 502.
func statusOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest {
		return int(status.Status().Code)
	}
	return http.StatusBadGateway
}

// indexes sends the runs of a Job's indexes, which the page draws.
func (s *Server) indexes(w http.ResponseWriter, r *http.Request) {
	job := s.hub.Job(jobOf(r))
	if job == nil {
		http.NotFound(w, r)
		return
	}
	indexes := view.NewIndexMap(job, s.hub.Details(r.Context(), job).Pods)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(indexes) // the browser has gone
}

func jobOf(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
}
