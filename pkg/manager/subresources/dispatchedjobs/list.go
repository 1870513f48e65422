package dispatchedjobs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/mirror"
)

// List responds with the Jobs of a namespace, or of all.
func (s *Server) List(w http.ResponseWriter, r *http.Request, namespace string, o *Options) error {
	f, err := formOf(r.Header, r.URL.Query())
	if err != nil {
		return err
	}
	options := o.ListOptions
	options.Limit = pageSize
	if o.Limit > 0 {
		options.Limit = min(o.Limit, pageSize)
	}
	if options.ResourceVersion == "0" { // any version will do, but the hub would ignore the limit
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
	}
	page, err := s.page(r.Context(), namespace, options)
	if err != nil {
		return err
	}
	defer s.useReasons(r.Context(), w)()
	out := &list{to: w, form: f, now: time.Now()}
	meta := metav1.ListMeta{ResourceVersion: page.ResourceVersion}
	if o.Limit > 0 {
		meta.Continue = page.Continue
	}
	if err := out.begin(meta); err != nil {
		return err
	}
	for {
		if err := s.add(out, page); err != nil {
			return err
		}
		if o.Limit > 0 || page.Continue == "" {
			return out.end()
		}
		options.Continue, options.ResourceVersion, options.ResourceVersionMatch = page.Continue, "", ""
		if page, err = s.page(r.Context(), namespace, options); err != nil {
			return fmt.Errorf("the list breaks off: %w", err)
		}
	}
}

func (s *Server) page(ctx context.Context, namespace string, options metav1.ListOptions) (*batchv1.JobList, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	page, err := s.hub.Jobs(namespace).List(ctx, options)
	if err != nil {
		return nil, fromHub(err)
	}
	return page, nil
}

func (s *Server) add(out *list, page *batchv1.JobList) error {
	for i := range page.Items {
		if !mirror.Managed(&page.Items[i]) {
			continue
		}
		seen := s.view(&page.Items[i])
		content, err := out.item(&seen, out.now)
		if err != nil {
			return err
		}
		if err := out.add(content); err != nil {
			return err
		}
	}
	return nil
}

// list writes a list or a table piece by piece.
type list struct {
	form

	to    http.ResponseWriter
	now   time.Time
	items int
}

func (l *list) begin(meta metav1.ListMeta) error {
	items := "items"
	head := map[string]any{}
	if l.table {
		items = "rows"
		head["columnDefinitions"] = columns()
	}
	kind := l.kind("DispatchedJobList")
	head["kind"], head["apiVersion"], head["metadata"] = kind.Kind, kind.APIVersion, meta
	content, err := json.Marshal(head)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.to, `%s,%q:[`, content[:len(content)-1], items)
	return err
}

func (l *list) add(content []byte) error {
	if l.items++; l.items > 1 {
		content = append([]byte{','}, content...)
	}
	_, err := l.to.Write(content)
	return err
}

func (l *list) end() error {
	_, err := l.to.Write([]byte("]}\n"))
	return err
}
