{{- /* The manager's arguments: what the other templates rely on, then what the user chose. */ -}}
{{- define "jobferry.args" -}}
- --namespace={{ .Release.Namespace }}
- --metrics-bind-address=:8080
- --health-probe-bind-address=:8081
{{- if .Values.metrics.secure }}
- --metrics-secure
{{- end }}
{{- include "jobferry.flags" .Values.config }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "jobferry.ports" -}}
- name: metrics
  containerPort: 8080
- name: health
  containerPort: 8081
{{- end -}}
