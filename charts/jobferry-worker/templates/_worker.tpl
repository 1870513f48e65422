{{- /* The controller's arguments: what the other templates rely on, then what the user chose. */ -}}
{{- define "jobferry-worker.args" -}}
- --namespace={{ .Release.Namespace }}
- --metrics-bind-address=:8080
- --health-probe-bind-address=:8081
{{- if .Values.metrics.secure }}
- --metrics-secure
{{- end }}
{{- if .Values.dropIn }}
- --drop-in
{{- end }}
{{- with .Values.impersonate }}
- {{ printf "--as=%s" . | quote }}
{{- end }}
{{- range .Values.managedBy }}
- {{ printf "--managed-by=%s" . | quote }}
{{- end }}
{{- include "jobferry-worker.flags" .Values.config }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "jobferry-worker.ports" -}}
- name: metrics
  containerPort: 8080
- name: health
  containerPort: 8081
{{- end -}}
