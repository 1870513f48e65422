{{- /* The release's name, unless that says "jobferry" anyway. */ -}}
{{- define "jobferry.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- /* Name of the Deployment, and of most that belongs to it. */ -}}
{{- define "jobferry.manager" -}}
{{ include "jobferry.fullname" . }}-manager
{{- end -}}

{{- define "jobferry.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "jobferry.manager" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- required "serviceAccount.name: say which one to use, as serviceAccount.create is false" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "jobferry.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: manager
{{- end -}}

{{- define "jobferry.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "jobferry.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: jobferry
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "jobferry.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* How Jobs become Jobferry's on this hub: Policy, Webhook or Off. */ -}}
{{- define "jobferry.admissionMode" -}}
{{- if ne .Values.admission.mode "Auto" -}}
{{- .Values.admission.mode -}}
{{- else if .Capabilities.APIVersions.Has "admissionregistration.k8s.io/v1/MutatingAdmissionPolicy" -}}
Policy
{{- else -}}
Webhook
{{- end -}}
{{- end -}}

{{- /* A map of camel-case names as flags, one a line. YAML's numbers arrive as floats: large ones would be 1e+06. */ -}}
{{- define "jobferry.flags" -}}
{{- range $name, $value := . }}
{{- if kindIs "float64" $value }}
- {{ printf "--%s=%d" (kebabcase $name) (int64 $value) | quote }}
{{- else if not (kindIs "invalid" $value) }}
- {{ printf "--%s=%v" (kebabcase $name) $value | quote }}
{{- end }}
{{- end }}
{{- end -}}
