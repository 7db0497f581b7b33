"""The pages of the Django project."""

from django.http import HttpResponse
from django.urls import path

urlpatterns = [path("", lambda request: HttpResponse("home"))]
